"""Built-in kernels: loops, GEMMs and convolutions as functions of the `llvm` dialect.

The host lowering and the backends call this package for their code. A kernel depends on sizes,
vectors and memory only, not on the IR op or the caller.
"""
