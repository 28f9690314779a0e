"""Convolutions on NVIDIA GPUs with cuDNN. See `docs/dev-notes/cuda.md`."""
