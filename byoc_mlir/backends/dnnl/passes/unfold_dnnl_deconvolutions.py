"""The pass `unfold-dnnl-deconvolutions`: convolutions of pixels instead of reference code."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import TensorType, bf16
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.dialect import (
    ConvolutionOp,
    DeconvolutionOp,
    EltwiseAttr,
    PermuteOp,
    ReorderOp,
    ViewOp,
    with_layout,
)
from byoc_mlir.backends.dnnl.dialect.base import like
from byoc_mlir.backends.dnnl.passes.region_pass import RegionPass
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import ints, shape_of, tensor_type
from byoc_mlir.dialects.relay.constant import derived_array
from byoc_mlir.tensors import Array


@dataclass(frozen=True)
class UnfoldDnnlDeconvolutions(RegionPass):
    """Deconvolutions of `bf16`, for which the library has reference code, become convolutions of
    single pixels, where each place of the result reads one pixel.

    That is where the strides are as large as the window. The places of a window are channels,
    innermost in memory, until a copy brings them to their lines.

    ```mlir
    %0 = dnnl.deconvolution %x, %w {strides = [2, 2], …}
        : (tensor<1x8x6x6xbf16>, tensor<8x3x2x2xbf16>) -> tensor<1x3x12x12xbf16>
    ```
    becomes
    ```mlir
    %1 = dnnl.convolution %x, %of_places {strides = [1, 1], …}
        : (tensor<1x8x6x6xbf16>, tensor<12x8x1x1xbf16>)
        -> tensor<1x12x6x6xbf16, #dnnl.layout<"acdb">>
    %2 = dnnl.permute %1 {axes = [0, 2, 3, 1]} : (…) -> tensor<1x6x6x12xbf16>
    %3 = dnnl.view %2 : (…) -> tensor<1x6x6x2x2x3xbf16>
    %4 = dnnl.permute %3 {axes = [0, 1, 3, 2, 4, 5]} : (…) -> tensor<1x6x2x6x2x3xbf16, …>
    %5 = dnnl.reorder %4 : (…) -> tensor<1x6x2x6x2x3xbf16>
    %6 = dnnl.view %5 : (…) -> tensor<1x12x12x3xbf16>
    %0 = dnnl.permute %6 {axes = [0, 3, 1, 2]} : (…) -> tensor<1x3x12x12xbf16, #dnnl.layout<"acdb">>
    ```
    """

    name = "unfold-dnnl-deconvolutions"

    def change(self, region: FuncOp) -> None:
        unfold_deconvolutions(region)


def unfold_deconvolutions(region: FuncOp) -> None:
    """Changes a region as the pass does."""
    for op in list(region.body.block.ops):
        if isinstance(op, DeconvolutionOp) and can_unfold(op) and _is_rounded(op):
            unfold(op)


def can_unfold(op: DeconvolutionOp) -> bool:
    """Whether each place of the result reads one pixel, by weights that are known."""
    return (
        ints(op.strides) == shape_of(op.weights)[2:]
        and not any(ints(op.padding))
        and set(ints(op.dilation)) == {1}
        and op.groups.value.data == 1
        and all(isinstance(value.owner, ConstantOp) for value in op.primary[1:])
        and all(isinstance(one, EltwiseAttr) for one in op.post_ops)
    )


def _is_rounded(op: DeconvolutionOp) -> bool:
    return tensor_type(op.arguments[0]).element_type == bf16


def unfold(op: DeconvolutionOp) -> ConvolutionOp:
    """Puts a convolution and a copy in the place of a deconvolution. Returns the former."""
    source, window = op.arguments[0], ints(op.strides)
    rank, places = len(window), math.prod(window)
    batch, _, *spatial = shape_of(source)
    outputs = shape_of(op.output)[1]
    weights = _constant(op.weights, "of_places", _of_places)
    bias = [] if op.bias is None else [_constant(op.bias, f"repeated.{places}", _repeated(places))]
    element = tensor_type(op.output).element_type
    written = TensorType(element, [batch, places * outputs, *spatial])
    convolution = ConvolutionOp(
        [source, *(one.output for one in (weights, *bias))],
        strides=[1] * rank,
        padding=[0] * (2 * rank),
        dilation=[1] * rank,
        post_ops=op.post_ops,
        element=op.element,
        result_types=[with_layout(written, layouts.channels_last(rank + 2))],
    )
    moves = _side_by_side(convolution.output, window)
    for new in (weights, *bias, convolution, *moves):
        new.location = op.location
        Rewriter.insert_op(new, InsertPoint.before(op))
    _replace(op, moves[-1].results[0])
    return convolution


def _replace(op: DeconvolutionOp, value: SSAValue) -> None:
    """Lets everybody read a value instead; results of a region are row-major."""
    if any(isinstance(use.operation, ReturnOp) for use in op.output.uses):
        returned = ReorderOp(value, result_types=[like(value, shape_of(value))])
        returned.location = op.location
        Rewriter.insert_op(returned, InsertPoint.before(op))
        value = returned.output
    op.output.replace_all_uses_with(value)
    Rewriter.erase_op(op)


def _constant(value: SSAValue, how: str, derive: Callable[[Array], Array]) -> ConstantOp:
    """What is derived from a constant; once for all uses of it."""
    assert isinstance(value.owner, ConstantOp)
    array, name = value.owner.array, value.owner.weight.name
    return ConstantOp.of(f"{name}.{how}", derived_array(how, [array], lambda: derive(array)))


def _of_places(weights: Array) -> Array:
    """`[C, O, ...]` as those of single pixels, `[places O, C, 1, ...]`."""
    inputs, _, *window = weights.shape
    last = np.moveaxis(weights, (0, 1), (-1, -2))
    return np.ascontiguousarray(last).reshape(-1, inputs, *[1] * len(window))


def _repeated(places: int) -> Callable[[Array], Array]:
    return lambda bias: np.tile(bias, places)


def _side_by_side(value: SSAValue, window: Sequence[int]) -> Sequence[Operation]:
    """Channels of places, innermost in memory, as places."""
    rank = len(window)
    batch, channels, *spatial = shape_of(value)
    outputs = channels // math.prod(window)
    last = PermuteOp.of(value, [0, *range(2, rank + 2), 1])
    apart = _view(last.output, [batch, *spatial, *window, outputs])
    pairs = [axis for one in range(1, rank + 1) for axis in (one, rank + one)]
    paired = PermuteOp.of(apart.output, [0, *pairs, 2 * rank + 1])
    plain = like(paired.output, shape_of(paired.output))
    moved = ReorderOp(paired.output, result_types=[plain])
    large = [size * step for size, step in zip(spatial, window, strict=True)]
    whole = _view(moved.output, [batch, *large, outputs])
    first = PermuteOp.of(whole.output, [0, rank + 1, *range(1, rank + 1)])
    return last, apart, paired, moved, whole, first


def _view(value: SSAValue, shape: Sequence[int]) -> ViewOp:
    return ViewOp(value, result_types=[like(value, shape)])
