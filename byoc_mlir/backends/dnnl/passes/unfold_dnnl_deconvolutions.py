"""The pass `unfold-dnnl-deconvolutions`: 1x1 convolutions instead of reference code."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from xdsl.dialects.builtin import bf16
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass, replace_located
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import derived_array
from byoc_mlir.limits import in_time
from byoc_mlir.tensors import Array


class UnfoldDnnlDeconvolutions(RegionPass):
    """Replaces `bf16` deconvolutions, for which oneDNN has reference code, by 1x1 convolutions.

    The pass applies if the strides equal the window, so that each output element depends on one
    input pixel. The positions of the window become channels, which a copy shuffles to pixels.

    ```mlir
    %0 = dnnl.deconvolution %x, %w {strides = [2, 2], …}
        : (tensor<1x8x6x6xbf16>, tensor<8x3x2x2xbf16>) -> tensor<1x3x12x12xbf16>
    ```
    becomes
    ```mlir
    %1 = dnnl.convolution %x, %of_places {strides = [1, 1], …}
        : (tensor<1x8x6x6xbf16>, tensor<12x8x1x1xbf16>) -> tensor<1x12x6x6xbf16>
    %0 = dnnl.pixel_shuffle %1 {block = [2, 2]} : (…) -> tensor<1x3x12x12xbf16>
    ```
    """

    name = "unfold-dnnl-deconvolutions"

    def change(self, region: FuncOp) -> None:
        unfold_deconvolutions(region)


def unfold_deconvolutions(region: FuncOp) -> None:
    """Replaces the deconvolutions of a region that can be unfolded."""
    for op in in_time(region.body.block.ops):
        if isinstance(op, dnnl.DeconvolutionOp) and can_unfold(op) and _is_rounded(op):
            unfold(op)


def can_unfold(op: dnnl.DeconvolutionOp) -> bool:
    """True if each output element depends on one input pixel, and the weights are constants."""
    return (
        ints(op.strides) == shape_of(op.weights)[2:]
        and not any(ints(op.padding))
        and set(ints(op.dilation)) == {1}
        and op.groups.value.data == 1
        and all(isinstance(value.owner, ConstantOp) for value in op.primary[1:])
        and all(isinstance(one, dnnl.EltwiseAttr) for one in op.post_ops)
    )


def _is_rounded(op: dnnl.DeconvolutionOp) -> bool:
    return tensor_type(op.arguments[0]).element_type == bf16


def unfold(op: dnnl.DeconvolutionOp) -> dnnl.ConvolutionOp:
    """Replaces a deconvolution by a convolution and a pixel shuffle. Returns the convolution."""
    source, window = op.arguments[0], ints(op.strides)
    rank, places = len(window), math.prod(window)
    weights = _constant(op.weights, "of_places", _of_places)
    bias = [] if op.bias is None else [_constant(op.bias, f"repeated.{places}", _repeated(places))]
    convolution = dnnl.ConvolutionOp(
        [source, *(one.output for one in (weights, *bias))],
        strides=[1] * rank,
        padding=[0] * (2 * rank),
        dilation=[1] * rank,
        post_ops=op.post_ops,
        element=op.element,
    )
    pixels = dnnl.PixelShuffleOp(convolution.output, block=list(window))
    replace_located(op, weights, *bias, convolution, pixels)
    return convolution


def _constant(value: SSAValue, how: str, derive: Callable[[Array], Array]) -> ConstantOp:
    """Returns a constant derived from another one; values that are derived in the same way share
    it.
    """
    assert isinstance(value.owner, ConstantOp)
    array, name = value.owner.array, value.owner.weight.name
    return ConstantOp.of(f"{name}.{how}", derived_array(how, [array], lambda: derive(array)))


def _of_places(weights: Array) -> Array:
    """Reshapes weights `[C, O, ...]` to the weights of a 1x1 convolution, `[places O, C, 1,
    ...]`.
    """
    inputs, _, *window = weights.shape
    last = np.moveaxis(weights, (0, 1), (-1, -2))
    return np.ascontiguousarray(last).reshape(-1, inputs, *[1] * len(window))


def _repeated(places: int) -> Callable[[Array], Array]:
    return lambda bias: np.tile(bias, places)
