"""What oneDNN may run: rules for ops, and patterns of composites."""
