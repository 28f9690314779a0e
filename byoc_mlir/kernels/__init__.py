"""Built-in kernels: loops, GEMMs and convolutions as functions of the `llvm` dialect.

The host lowering and the backends call this package for their code. A kernel knows sizes, vectors
and memory; it knows neither the op that it computes nor its caller.
"""
