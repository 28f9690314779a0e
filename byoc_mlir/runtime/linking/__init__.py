"""Object files, linked in the memory of the process."""
