"""Quantised GEMMs and convolutions of the host, as calls of `kernels/integer_gemm`."""
