"""What computes: loops, products and convolutions as functions of the `llvm` dialect.

The host lowering and backends take their code from here. A kernel knows sizes, vectors and memory;
it does not know which op asked for it, nor what calls it.
"""
