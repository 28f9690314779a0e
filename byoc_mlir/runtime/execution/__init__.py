"""Running the nodes of a plan, one kind a file."""
