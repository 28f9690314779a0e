"""Code generation from a planned region of `dnnl` ops to `llvm` functions that call oneDNN."""
