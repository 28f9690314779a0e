"""Ops that bring their weights to another order, once where they are constants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from onnx.reference.op_run import OpRun

from byoc_mlir.tensors import Array


class WeightedOp(OpRun):
    """An op whose second input is weights."""

    _weights: Array | None = None
    _arranged: Array | None = None

    @abstractmethod
    def arrange(self, weights: Array) -> Array:
        """The weights in the order in which this op reads them."""

    def prepare(self, constants: Mapping[str, Array]) -> None:
        """Arranges the weights, if they are among arrays that nobody changes."""
        weights = constants.get(self.input[1])
        if weights is not None:
            self._weights, self._arranged = weights, self.arrange(weights)

    def arranged(self, weights: Array) -> Array:
        """The weights of a run in the order in which this op reads them."""
        if self._arranged is not None and weights is self._weights:
            return self._arranged
        return self.arrange(weights)
