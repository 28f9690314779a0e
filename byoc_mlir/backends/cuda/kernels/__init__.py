"""Kernels of a region: from `relay` to PTX."""
