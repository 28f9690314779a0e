"""Finding out why a compiled model computes something else, and what became of a node."""
