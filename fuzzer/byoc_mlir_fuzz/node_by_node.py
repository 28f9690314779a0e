"""Cases that run in the interpreter tier, as models do until they are compiled."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import numpy_helper

from byoc_mlir.interpreter.model import InterpretedModel
from byoc_mlir.interpreter.tier_ops import unknown
from byoc_mlir.runtime.report import Report
from byoc_mlir.tensors import Array


class NotRunError(Exception):
    """Error of a model or inputs that the interpreter tier does not run: the compiled program
    would.
    """


class NodeByNode:
    """Runner of a model in the interpreter tier, as `InterpretedModel`.

    Raises:
        NotRunError: the interpreter tier does not run the model.
    """

    def __init__(self, model: onnx.ModelProto, threads: int):
        reason = unknown(model)
        if reason:
            raise NotRunError(reason)
        tensors = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
        self._model = InterpretedModel(model, tensors, threads)

    def run(self, feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        """Returns the outputs by name.

        Raises:
            NotRunError: an op fails, for whatever reason.
        """
        try:
            return self._model.run(feeds)
        except Exception as error:  # an op raises what it likes
            raise NotRunError(str(error)) from error

    def report(self) -> Report:
        """Returns an empty report: no node was placed."""
        return Report()
