"""Ops that bring their weights to another order, once where they are constants."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from byoc_mlir.eager.ops.op import Op
from byoc_mlir.tensors import Array


class PreparedOp(Op):
    """An op that is told what stays the same."""

    @abstractmethod
    def prepare(self, constants: Mapping[str, Array]) -> None:
        """Says which arrays nobody changes, by the names of inputs."""


class WeightedOp(PreparedOp):
    """An op whose second input is weights."""

    _constant: Array | None = None
    _arranged: Array | None = None

    @abstractmethod
    def arrange(self, weights: Array) -> Array:
        """The weights in the order in which this op reads them."""

    def prepare(self, constants: Mapping[str, Array]) -> None:
        """Weights among them are arranged once."""
        self._constant = constants.get(self.input[1])

    def arranged(self, weights: Array) -> Array:
        """The weights of a run in the order in which this op reads them."""
        if weights is not self._constant:
            return self.arrange(weights)
        if self._arranged is None:  # another thread may put the same in its place
            self._arranged = self.arrange(weights)
        return self._arranged
