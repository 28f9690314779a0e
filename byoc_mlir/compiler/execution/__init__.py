"""Executables: which kind a model needs, and what of it is compiled at once."""
