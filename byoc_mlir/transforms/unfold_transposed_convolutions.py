"""The pass `unfold-transposed-convolutions`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import RelayOp, elementwise, nn, transform, window
from byoc_mlir.dialects.relay.base import ints, shape_of, sizes_of
from byoc_mlir.dialects.relay.qnn import DequantizeOp, QuantizeOp
from byoc_mlir.limits import in_time
from byoc_mlir.transforms.op_sequence import OpSequence
from byoc_mlir.transforms.quantised import quantised
from byoc_mlir.transforms.rewriting import constant_array, erase_dead_ops, replace_op


class UnfoldTransposedConvolutions(ModulePass):
    """Converts quantised transposed convolutions to 1x1 convolutions, which run in integers.

    The pass converts convolutions whose strides equal their window, as in upsampling networks: each
    output element depends on one input pixel. The 1x1 convolution has a channel for each output of
    a window; a transpose moves the quantised outputs to their positions.

    Runs before `fake-quantization-to-integer`.

    ```mlir
    %0 = relay.nn.conv2d_transpose %x, %w {strides = [2, 2], …}
        : (tensor<1x8x6x6xf32>, tensor<8x3x2x2xf32>) -> tensor<1x3x12x12xf32>
    %1 = relay.qnn.quantize %0, %s, %z : … -> tensor<1x3x12x12xui8>
    // becomes
    %0 = relay.nn.conv2d %x, %of_places {strides = [1, 1], …}
        : (tensor<1x8x6x6xf32>, tensor<12x8x1x1xf32>) -> tensor<1x12x6x6xf32>
    %1 = relay.qnn.quantize %0, %s, %z : … -> tensor<1x12x6x6xui8>
    %2 = relay.reshape %1 {newshape = [1, 2, 2, 3, 6, 6]} : …
    %3 = relay.transpose %2 {axes = [0, 3, 4, 1, 5, 2]} : …
    %4 = relay.reshape %3 {newshape = [1, 3, 12, 12]} : …
    ```
    """

    name = "unfold-transposed-convolutions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in host_blocks(op):
            for candidate in in_time(block.ops):
                if isinstance(candidate, window.ConvTransposeOp) and _is_supported(candidate):
                    _unfold(candidate)
            erase_dead_ops(block)


def _is_supported(op: window.ConvTransposeOp) -> bool:
    data, weight = quantised(op.data), quantised(op.weight)
    if op.SPATIAL_RANK > 2 or data is None or weight is None or constant_array(weight.data) is None:
        return False
    if not weight.is_whole and weight.axis != 1:
        return False
    if ints(op.strides) != shape_of(op.weight)[2:] or op.groups.value.data != 1:
        return False
    return not any((*ints(op.padding), *ints(op.output_padding)))


def _unfold(op: window.ConvTransposeOp) -> None:
    """Rewrites the ops up to the quantised result, if there is one."""
    chain = _chain(op)
    if chain is None:
        return
    new = OpSequence(fused_location([op, *chain]))
    strides = ints(op.strides)
    value = _of_pixels(op, new)
    for step in chain:
        if isinstance(step, nn.BiasAddOp):
            value = new.add(nn.BiasAddOp, value, _for_places(step.bias, op, new), axis=1)
        else:
            value = new.add(
                cast(type[RelayOp], type(step)),
                *(value, *step.operands[1:]),
                **cast(Any, step.properties),
            )
    last = chain[-1]
    replace_op(last, new.ops, [_side_by_side(value, strides, new)])


def _chain(op: window.ConvTransposeOp) -> Sequence[Operation] | None:
    """Returns the ops up to the quantised result, or `None` if there are other users."""
    found: list[Operation] = []
    value: SSAValue = op.output
    while value.has_one_use():
        use = next(iter(value.uses)).operation
        found.append(use)
        if isinstance(use, QuantizeOp):
            return found if not sizes_of(use.scale) and not sizes_of(use.zero_point) else None
        is_bias = isinstance(use, nn.BiasAddOp) and use.positive_axis == 1 and use.data is value
        if not is_bias and not isinstance(use, nn.ReluOp | elementwise.ClipOp):
            return None
        value = use.results[0]
    return None


def _of_pixels(op: window.ConvTransposeOp, new: OpSequence) -> SSAValue:
    """Builds the 1x1 convolution, which has a channel for each window position of each output
    channel.
    """
    weight = quantised(op.weight)
    assert weight is not None
    rank, strides = op.SPATIAL_RANK, ints(op.strides)
    inputs, outputs = shape_of(op.weight)[:2]
    ordered = new.add(transform.TransposeOp, weight.data, axes=[*range(2, 2 + rank), 1, 0])
    data = new.reshape(ordered, [math.prod(strides) * outputs, inputs, *[1] * rank])
    scale, zero = (_repeated(one, strides, new) for one in (weight.scale, weight.zero_point))
    return new.add(
        window.CONV[rank],
        *(op.data, new.add(DequantizeOp, data, scale, zero, axis=0)),
        strides=[1] * rank,
        padding=[0] * (2 * rank),
        dilation=[1] * rank,
    )


def _for_places(bias: SSAValue, op: window.ConvTransposeOp, new: OpSequence) -> SSAValue:
    """Repeats a bias for each window position; a quantised bias stays quantised."""
    strides, integers = ints(op.strides), quantised(bias)
    if integers is None:
        return _repeated(bias, strides, new)
    operands = (integers.data, integers.scale, integers.zero_point)
    return new.add(DequantizeOp, *(_repeated(one, strides, new) for one in operands), axis=0)


def _repeated(value: SSAValue, strides: Sequence[int], new: OpSequence) -> SSAValue:
    """Repeats a vector for each window position; leaves a scalar as it is."""
    if not sizes_of(value):
        return value
    return new.add(transform.ConcatenateOp, [value] * math.prod(strides), axis=0)


def _side_by_side(value: SSAValue, strides: Sequence[int], new: OpSequence) -> SSAValue:
    """Moves the channels that stand for window positions to these positions."""
    batch, channels, *spatial = sizes_of(value)
    outputs, rank = channels // math.prod(strides), len(strides)
    apart = new.reshape(value, [batch, *strides, outputs, *spatial])
    pairs = [axis for one in range(rank) for axis in (rank + 2 + one, 1 + one)]
    moved = new.add(transform.TransposeOp, apart, axes=[0, rank + 1, *pairs])
    large = [size * stride for size, stride in zip(spatial, strides, strict=True)]
    return new.reshape(moved, [batch, outputs, *large])
