"""Execution of the nodes of a plan, one kind a file."""
