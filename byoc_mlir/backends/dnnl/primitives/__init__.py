"""The call of oneDNN, or the built-in kernel, of each `dnnl` op."""
