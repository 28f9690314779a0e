"""Interpreter tier: runs an ONNX model immediately, one node after the other.

Nothing here imports the compiler. The tier runs a model while another process compiles it
(`runtime.execution.tier`). `tier_ops` lists the supported ops; `ops` implements them.
"""
