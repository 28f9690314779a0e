"""NumPy implementations of ops, on arrays and plain Python attributes.

Each op is implemented here once. `dialects.relay.evaluate` uses it for ops of Relay, to fold
constants and as the oracle of tests; `interpreter.ops` uses it for nodes of ONNX. Nothing here
imports xDSL or ONNX.
"""
