"""Engines to measure: one module each, with a class `Engine`.

`Engine(model, threads, precision)` compiles the ONNX file, `engine.run(inputs)` answers one
request; both take and give arrays by name. A module imports its runtime at its top, so that a
worker process loads only what it measures.
"""

from __future__ import annotations

ENGINES = ("byoc", "byoc_host", "onnxruntime", "openvino", "iree")
PEERS = ("onnxruntime", "openvino")
