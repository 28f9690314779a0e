"""Convolutions as products, without a matrix of windows in memory."""
