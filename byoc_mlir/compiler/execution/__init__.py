"""Executables: the kind that a model needs, and the parts that are compiled at once."""
