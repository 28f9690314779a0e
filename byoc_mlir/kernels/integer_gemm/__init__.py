"""Products of bytes, summed in `i32`: matrix products and convolutions."""

NAME = "integer_gemm"
"""What IR and reports call the kernel for convolutions."""
