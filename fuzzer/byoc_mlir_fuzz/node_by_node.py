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
    """The model is not run so, or not on these inputs: the compiled program answers."""


class NodeByNode:
    """Runs a model as `InterpretedModel` does.

    Raises:
        NotRunError: it is none that is run so.
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
