"""Convolutions of the host as the kernels of `byoc_mlir.kernels` see them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import shape_of, tensor_type
from byoc_mlir.dialects.relay.window import Conv1DOp, Conv2DOp
from byoc_mlir.kernels.convolution import Convolution, Image, Pair
from byoc_mlir.kernels.epilogue import Epilogue

ALGORITHM = "algorithm"
"""On a convolution: the name of the kernel that computes it; without it, loops do."""

ConvolutionOp: TypeAlias = Conv1DOp | Conv2DOp

_PLAIN = Epilogue()


def convolutions(ops: Sequence[Operation]) -> Iterator[ConvolutionOp]:
    """Those that a kernel may compute: of `f32`, of one group, with constant weights."""
    for op in ops:
        if isinstance(op, ConvolutionOp) and _is_supported(op):
            yield op


def _is_supported(op: ConvolutionOp) -> bool:
    output = tensor_type(op.output)
    return (
        op.groups.value.data == 1
        and output.element_type == f32
        and isinstance(op.weight.owner, ConstantOp)
        and output.has_static_shape()
        and math.prod(shape_of(op.output)) > 0
    )


def described(op: ConvolutionOp, epilogue: Epilogue = _PLAIN) -> Convolution:
    """A convolution with its channels last; one of lines is one of images of one line."""
    strides, padding, dilation = op.checked_window()
    rank = op.SPATIAL_RANK
    window = shape_of(op.weight)[2:]
    return Convolution(
        _image(shape_of(op.data)),
        _image(shape_of(op.output)),
        _pair(window, 1),
        _pair(strides, 1),
        _pair(dilation, 1),
        _pair(padding[:rank], 0),
        _pair(padding[rank:], 0),
        epilogue,
    )


def _image(shape: Sequence[int]) -> Image:
    batch, channels, *sizes = shape
    return Image((batch, channels, *_pair(sizes, 1)), channels)


def _pair(sizes: Sequence[int], missing: int) -> Pair:
    first, second = (missing, *sizes)[-2:]
    return first, second
