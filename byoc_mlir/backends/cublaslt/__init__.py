"""Matmuls on NVIDIA GPUs by cuBLASLt. See `docs/dev-notes/cuda.md`."""
