"""Passes from `relay` to `relay`: simplification, quantisation, precision and partitioning."""
