"""Convolutions by Winograd's algorithm."""
