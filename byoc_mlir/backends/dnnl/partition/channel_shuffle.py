"""Matching of ShuffleNet's channel shuffle in the decomposed form that exporters write."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.transform import ReshapeOp, TransposeOp
from byoc_mlir.patterns import Pattern, is_op, wildcard


@dataclass(frozen=True)
class ChannelShuffle:
    """Shuffle of the channels of `data [N, C, ...]`, that is, a transposition of `[groups, C /
    groups]`.
    """

    data: SSAValue
    groups: int


def channel_shuffle_pattern() -> Pattern:
    """Returns the pattern: split the channels into two dimensions, transpose them, merge them."""
    split = is_op("reshape")(wildcard())
    return is_op("reshape")(is_op("transpose")(split))


def read_channel_shuffle(reader: Reader, value: SSAValue) -> ChannelShuffle | None:
    """Matches a channel shuffle that ends in `value`, and checks its shapes and axes."""
    join = reader.owner(value)
    swap = reader.owner(join.data) if isinstance(join, ReshapeOp) else None
    split = reader.owner(swap.data) if isinstance(swap, TransposeOp) else None
    if not isinstance(join, ReshapeOp) or not isinstance(swap, TransposeOp):
        return None
    if not isinstance(split, ReshapeOp):
        return None
    data = reader.resolve(split.data)
    shape, rows = shape_of(data), shape_of(split.output)
    swapped = (0, 2, 1, *range(3, len(rows)))
    keeps_others = len(rows) == len(shape) + 1 and rows[3:] == shape[2:] and rows[0] == shape[0]
    if not keeps_others or ints(swap.axes) != swapped or shape_of(join.output) != shape:
        return None
    return ChannelShuffle(data, rows[1])
