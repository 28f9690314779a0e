"""Int8 GEMMs and convolutions, summed in `i32`."""

NAME = "integer_gemm"
"""Name of the convolution kernel in IR and reports."""
