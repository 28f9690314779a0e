"""Profitability of regions, and of reduced precision in convolutions and matmuls."""
