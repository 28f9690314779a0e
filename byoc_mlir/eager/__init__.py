"""Runs an ONNX model node by node, at once: nothing here imports the compiler.

Answers come from here while another process compiles (`runtime.executables.tiered`). The nodes are
run by ONNX's reference evaluator, those that take long by ops of our own (`ops`). Models with ops
for which that is not right or not quick (`known_ops`) are not run here.
"""
