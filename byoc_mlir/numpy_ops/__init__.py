"""NumPy implementations of ops, on arrays and plain Python attributes.

Each op stands here once. `dialects.relay.evaluate` runs it for ops of Relay, to fold constants and
as the oracle of tests; `eager.ops` runs it for nodes of ONNX. Nothing here imports xDSL or ONNX.
"""
