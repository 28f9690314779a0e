"""Running what the fallback interpreter made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
import onnx

from byoc_mlir.dialects.relay.evaluate.onnx import evaluated_otherwise
from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.module import RegionFunction, RegionModule
from byoc_mlir.runtime.program import Array

if TYPE_CHECKING:
    from onnx.reference import ReferenceEvaluator


def evaluator_of(model: onnx.FunctionProto | onnx.ModelProto) -> ReferenceEvaluator:
    """ONNX's evaluator of a model. It is imported only here: 40 ms, and few models need it.

    Raises:
        ExecutionError: it does not know an op, or its attributes.
    """
    from onnx.reference import ReferenceEvaluator

    try:
        return ReferenceEvaluator(model, new_ops=[*evaluated_otherwise()])
    except Exception as error:  # it raises what it likes
        raise ExecutionError(f"ONNX's evaluator cannot run a part of the model: {error}") from error


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
