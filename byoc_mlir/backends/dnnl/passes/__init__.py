"""Passes that lower a region to the input of code generation: one pass in a file."""
