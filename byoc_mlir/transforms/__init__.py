"""Passes from `relay` to `relay`: simplification and partitioning."""
