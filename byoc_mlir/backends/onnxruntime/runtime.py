"""Execution of ONNX models in ONNX Runtime. Nothing here needs the compiler."""

from __future__ import annotations

import struct
from functools import cache
from typing import Any, Self, cast

import numpy as np

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.module import RegionFunction, RegionModule
from byoc_mlir.runtime.program import Array

_HEADER = struct.Struct("<I?")


class OnnxRuntimeModule(RegionModule):
    """A region as a serialised ONNX model, with the settings to run it."""

    def __init__(self, model: bytes, threads: int, optimise: bool):
        self._model, self._threads, self._optimise = model, threads, optimise

    @classmethod
    def load(cls, data: bytes) -> Self:
        if len(data) <= _HEADER.size:
            raise ExecutionError(f"{len(data)} bytes are no region for ONNX Runtime")
        threads, optimise = _HEADER.unpack_from(data)
        return cls(data[_HEADER.size :], threads, optimise)

    def save(self) -> bytes:
        return _HEADER.pack(self._threads, self._optimise) + self._model

    def get_source(self) -> str:
        import onnx

        return onnx.printer.to_text(onnx.ModelProto.FromString(self._model))

    def get_function(self, symbol: str) -> RegionFunction:
        try:
            session = open_session(self._model, self._threads, self._optimise)
        except ImportError as error:
            raise ExecutionError(
                f"region {symbol} runs in ONNX Runtime, which is not installed;"
                " `pip install onnxruntime`"
            ) from error
        names = [value.name for value in session.get_inputs()]

        def run(inputs: list[Array], outputs: list[Array]) -> None:
            results = session.run(None, dict(zip(names, inputs, strict=True)))
            for output, result in zip(outputs, cast(list[Any], results), strict=True):
                np.copyto(output, result)

        return run


def open_session(model: bytes, threads: int, optimise: bool) -> Any:
    """Opens an ONNX Runtime session for a model.

    Raises:
        ImportError: ONNX Runtime is not installed.
    """
    import onnxruntime  # pyright: ignore[reportMissingTypeStubs]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimise else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@cache
def onnxruntime_ops() -> frozenset[tuple[str, str]]:
    """Returns the domain and name of each op for which the installed ONNX Runtime has a schema."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state  # pyright: ignore

    schemas = cast(Any, state).get_all_operator_schema()
    return frozenset((schema.domain, schema.name) for schema in schemas)
