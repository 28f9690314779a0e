"""Execution of the ONNX functions of the fallback interpreter."""

from __future__ import annotations

from typing import Self

import numpy as np
import onnx

from byoc_mlir.dialects.relay.evaluate.onnx import evaluator_of
from byoc_mlir.runtime.module import RegionFunction, RegionModule
from byoc_mlir.runtime.program import Array


class ReferenceModule(RegionModule):
    """A region as an ONNX function."""

    def __init__(self, function: onnx.FunctionProto):
        self._function = function

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(onnx.FunctionProto.FromString(data))

    def save(self) -> bytes:
        return self._function.SerializeToString()

    def get_function(self, symbol: str) -> RegionFunction:
        evaluator = evaluator_of(self._function)

        def run(inputs: list[Array], outputs: list[Array]) -> None:
            feeds = dict(zip(self._function.input, inputs, strict=True))
            results = evaluator.run(None, feeds, {})
            for output, result in zip(outputs, results, strict=True):
                np.copyto(output, np.asarray(result))

        return run

    def get_source(self) -> str:
        return onnx.printer.to_text(self._function)
