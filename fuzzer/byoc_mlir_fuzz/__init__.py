"""A fuzzer: random and mutated models against ONNX Runtime and the reference evaluator.

`byoc-fuzz --minutes 10 --seed 1`; docs/fuzzing.md says how to use it.
"""
