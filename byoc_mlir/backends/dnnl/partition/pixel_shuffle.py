"""Matching of pixel shuffles in decomposed form, as the unfolding of transposed convolutions writes
them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.partition.activations import Reader
from byoc_mlir.dialects.relay.base import ints, shape_of
from byoc_mlir.dialects.relay.transform import ReshapeOp, TransposeOp


@dataclass(frozen=True)
class PixelShuffle:
    """Shuffle of the channels of `data [N, C, ...]` to blocks of pixels.

    The channels are `[*block, C / places]`.
    """

    data: SSAValue
    block: tuple[int, ...]


def read_pixel_shuffle(reader: Reader, value: SSAValue) -> PixelShuffle | None:
    """Matches a pixel shuffle that ends in `value`, and checks its shapes and axes."""
    join = reader.owner(value)
    swap = reader.owner(join.data) if isinstance(join, ReshapeOp) else None
    split = reader.owner(swap.data) if isinstance(swap, TransposeOp) else None
    if not (isinstance(swap, TransposeOp) and isinstance(split, ReshapeOp)):
        return None
    data = reader.resolve(split.data)
    images, channels, *sizes = shape_of(data)
    rank = len(sizes)
    block = shape_of(split.output)[1 : 1 + rank]
    apart = (images, *block, channels // math.prod(block) if block else 0, *sizes)
    pairs = (axis for one in range(rank) for axis in (rank + 2 + one, 1 + one))
    large = (size * step for size, step in zip(sizes, block, strict=False))
    if shape_of(split.output) != apart or ints(swap.axes) != (0, rank + 1, *pairs):
        return None
    if shape_of(value) != (images, apart[rank + 1], *large):
        return None
    return PixelShuffle(data, tuple(block))
