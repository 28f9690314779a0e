"""Two devices in software, made of the same source."""
