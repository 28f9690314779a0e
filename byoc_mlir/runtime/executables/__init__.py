"""What `compile` and `load` return: one kind of executable a file."""
