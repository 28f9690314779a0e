"""Convolutions as implicit GEMMs, without an im2col matrix in memory."""
