"""Labels of a classifier's classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from byoc_mlir.dialects.relay import elementwise, index, logic, reduce
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.value import NodeRefused, Value


@dataclass(frozen=True)
class Labels:
    """Integer labels, one for each class."""

    numbers: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.numbers)

    def best(self, context: NodeContext, scores: Value) -> Value:
        """Returns the labels `[N]` of the classes with the largest scores `[N, classes]`.

        Of classes with equal scores, the first one wins.
        """
        place = context.emit(reduce.ArgmaxOp, scores, axis=[1], keepdims=False)
        if self.numbers == tuple(range(len(self.numbers))):
            return place
        table = context.constant(self.numbers, np.int64)
        return context.emit(index.TakeOp, table, place, axis=0)

    def second_if_above(self, context: NodeContext, score: Value, bound: float) -> Value:
        """Returns the second label where the score `[N, 1]` is above the bound, else the first."""
        flat = arith.reshape(context, score, [score.sizes[0]])
        is_above = context.emit(logic.GreaterOp, flat, score.dtype.type(bound))
        first, second = (np.int64(number) for number in self.numbers)
        return context.emit(elementwise.WhereOp, is_above, second, first)


def labels_of(numbers: Sequence[int] | None, texts: Sequence[str] | None) -> Labels:
    """Returns the labels in a classifier's attributes.

    Raises:
        NodeRefused: the labels are strings, or there are none.
    """
    if texts:
        raise NodeRefused("labels that are strings are not compiled")
    if not numbers:
        raise NodeRefused("there are no labels; accepted are integers or strings, one per class")
    return Labels(tuple(numbers))
