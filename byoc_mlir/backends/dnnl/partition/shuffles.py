"""Matching of shuffles in decomposed form: channels are split, transposed and merged.

Exporters write ShuffleNet's channel shuffle so, and the unfolding of transposed convolutions
writes pixel shuffles so.
"""

from __future__ import annotations

import math
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


@dataclass(frozen=True)
class PixelShuffle:
    """Shuffle of the channels of `data [N, C, ...]` to blocks of pixels.

    The channels are `[*block, C / places]`.
    """

    data: SSAValue
    block: tuple[int, ...]


def shuffle_pattern() -> Pattern:
    """Returns the pattern: split the channels into dimensions, transpose them, merge them."""
    split = is_op("reshape")(wildcard())
    return is_op("reshape")(is_op("transpose")(split))


def read_shuffle(reader: Reader, value: SSAValue) -> ChannelShuffle | PixelShuffle | None:
    """Matches a shuffle that ends in `value`, and checks its shapes and axes."""
    join = reader.owner(value)
    swap = reader.owner(join.data) if isinstance(join, ReshapeOp) else None
    split = reader.owner(swap.data) if isinstance(swap, TransposeOp) else None
    if not (isinstance(swap, TransposeOp) and isinstance(split, ReshapeOp)):
        return None
    data, apart = reader.resolve(split.data), shape_of(split.output)
    images, channels, *sizes = shape = shape_of(data)
    rank = len(sizes)
    if ints(swap.axes) == (0, 2, 1, *range(3, rank + 3)):
        keeps_others = apart[0] == images and list(apart[3:]) == sizes
        return ChannelShuffle(data, apart[1]) if keeps_others and shape_of(value) == shape else None
    block = apart[1 : 1 + rank]
    outputs = channels // math.prod(block) if block else 0
    pairs = (axis for one in range(rank) for axis in (rank + 2 + one, 1 + one))
    large = (size * step for size, step in zip(sizes, block, strict=False))
    if apart != (images, *block, outputs, *sizes) or ints(swap.axes) != (0, rank + 1, *pairs):
        return None
    return PixelShuffle(data, block) if shape_of(value) == (images, outputs, *large) else None
