"""Tuning: search for faster ways to compute a model's kernels, by measurement."""
