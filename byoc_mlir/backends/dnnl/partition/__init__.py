"""Ops that oneDNN may run: rules for single ops, and patterns of composites."""
