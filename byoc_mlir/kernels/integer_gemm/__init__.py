"""Products of bytes, summed in `i32`: matrix products and convolutions."""
