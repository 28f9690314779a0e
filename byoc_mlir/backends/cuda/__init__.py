"""NVIDIA GPUs through the driver: the device, and a backend for the compiler's own kernels.

See `docs/dev-notes/cuda.md`.
"""
