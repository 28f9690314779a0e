"""Execution of the nodes of a plan; each kind of node has a file."""
