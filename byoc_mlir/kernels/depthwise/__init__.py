"""Convolutions of each channel by itself."""
