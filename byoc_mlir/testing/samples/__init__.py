"""Valid nodes with inputs: ONNX nodes, drawn at random, and Relay ops, listed.

The fuzzer, the conformance kit and the tests take their nodes from here.
"""
