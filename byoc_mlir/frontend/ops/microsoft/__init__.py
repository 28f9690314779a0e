"""Ops that ONNX Runtime's optimisers and exporters write, most of them in the domain
`com.microsoft`.
"""
