"""Searching for faster ways to compute a model's kernels, by measuring them."""
