"""Convolutions of the host in the terms of `byoc_mlir.kernels`."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import DYNAMIC, shape_of, sizes_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.window import ConvOp, CorrelationOp
from byoc_mlir.dims import Size
from byoc_mlir.kernels.convolution import Convolution, Image, are_few_channels, pair_of
from byoc_mlir.kernels.epilogue import Epilogue

ALGORITHM = "algorithm"
"""Attribute of a convolution: the name of the kernel that computes it. Without it, loops compute
it."""

_PLAIN = Epilogue()


def convolutions(ops: Sequence[Operation]) -> Iterator[ConvOp]:
    """Yields the convolutions that a kernel may compute.

    They are in `f32`, depthwise or of one group, with constant weights.
    """
    for op in ops:
        if isinstance(op, ConvOp) and _is_supported(op):
            yield op


def _is_supported(op: ConvOp) -> bool:
    output = tensor_type(op.output)
    return (
        op.SPATIAL_RANK < 3
        and op.groups.value.data in (1, sizes_of(op.data)[1])
        and output.element_type == f32
        and isinstance(op.weight.owner, ConstantOp)
        and DYNAMIC not in (sizes := type_sizes(output))
        and 0 not in sizes
        and isinstance(sizes_of(op.data)[1], int)
    )


def is_padded_before(op: CorrelationOp) -> bool:
    """True if a convolution's input is padded before its kernel reads it.

    This holds for images of few channels, so that each row of a window is contiguous.
    """
    channels = sizes_of(op.data)[1]
    return isinstance(channels, int) and are_few_channels(channels, op.groups.value.data)


def described(op: CorrelationOp, epilogue: Epilogue = _PLAIN) -> Convolution:
    """Returns the description of a convolution in NHWC; a 1-D convolution becomes a 2-D one of
    height 1.
    """
    strides, padding, dilation = op.checked_window()
    rank = op.SPATIAL_RANK
    window = shape_of(op.weight)[2:]
    sizes = sizes_of(op.data)
    if is_padded_before(op):
        sums = map(sum, zip(padding[:rank], sizes[2:], padding[rank:], strict=True))
        sizes, padding = [*sizes[:2], *sums], [0] * len(padding)
    return Convolution(
        _image(sizes),
        _image(sizes_of(op.output)),
        pair_of(window, 1),
        pair_of(strides, 1),
        pair_of(dilation, 1),
        pair_of(padding[:rank], 0),
        pair_of(padding[rank:], 0),
        epilogue,
        op.groups.value.data,
    )


def _image(sizes: Sequence[Size]) -> Image:
    batch, channels, *spatial = sizes
    count = operator.index(channels)
    return Image((batch, count, *pair_of(spatial, 1)), count)
