"""Cache of weights in the layouts of oneDNN's primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from byoc_mlir.onednn.primitives import ArrangedWeights
from byoc_mlir.tensors import Array


class _Arranging(Protocol):
    """Primitive that reads weights in a layout of its own."""

    @property
    def arrange(self) -> Callable[..., ArrangedWeights]:
        """Returns the function that copies weights to the primitive's layout."""
        ...

    def reads(self, weights: ArrangedWeights) -> bool:
        """True if weights that were arranged for another size are in the primitive's layout."""
        ...


class KeptWeights:
    """Weights in primitives' layouts; constants are arranged once for all sizes.

    Args:
        constants: the constant weights; `None` for each weight that is not constant.
    """

    def __init__(self, constants: Sequence[Array | None]):
        self._constants = constants
        self._kept: ArrangedWeights | None = None

    def arranged(self, primitive: _Arranging, weights: Sequence[Array | None]) -> ArrangedWeights:
        """Returns the weights of a run in the layout of a primitive."""
        if any(one is not other for one, other in zip(weights, self._constants, strict=True)):
            return primitive.arrange(*weights)
        kept = self._kept  # another thread may put the same in its place
        if kept is None or not primitive.reads(kept):
            kept = self._kept = primitive.arrange(*weights)
        return kept
