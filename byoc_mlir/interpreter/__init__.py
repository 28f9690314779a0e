"""Runs an ONNX model node by node, at once: nothing here imports the compiler.

Answers come from here while another process compiles (`runtime.execution.tier`). `tier_ops`
says which models are run so, `ops` computes their nodes.
"""
