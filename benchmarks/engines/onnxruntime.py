"""Engine for ONNX Runtime with its CPU provider and all graph optimisations (the default)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnxruntime


class Engine:
    """Session with `threads` threads inside of an op and one between ops."""

    def __init__(self, model: Path, threads: int, precision: str):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self.names = [output.name for output in self.session.get_outputs()]

    def run(self, inputs: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the outputs by name."""
        values = cast("list[np.ndarray[Any, Any]]", self.session.run(self.names, inputs))
        return dict(zip(self.names, values, strict=True))
