"""From a planned region of `dnnl` ops to functions in the `llvm` dialect that call oneDNN."""
