"""Convolutions of the host, as calls of the kernels that oneDNN's regions call too."""
