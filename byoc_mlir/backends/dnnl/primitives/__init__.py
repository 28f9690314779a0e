"""Which call of oneDNN, or which kernel of our own, a `dnnl` op is."""
