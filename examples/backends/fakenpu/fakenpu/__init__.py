"""A device in software with memory and queues of its own, and three backends on it."""
