"""The pass `decompose-transposed-convolutions`."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import DYNAMIC, shape_of, sizes_of, tensor_type, type_sizes
from byoc_mlir.dialects.relay.constant import Array, derived_array
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.dialects.relay.window import CONV, ConvTransposeOp
from byoc_mlir.dims import Size, ceildiv, largest
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder


class DecomposeTransposedConvolutions(ModulePass):
    """Rewrites transposed convolutions of the host to convolutions, for which there are kernels.

    With a stride of `s` along an axis, output positions whose distance is a multiple of `s` use the
    same kernel taps, one in `s`. So the outputs of `s` adjacent positions become channels of a
    convolution of stride 1, and are interleaved afterwards. The pass requires constant, finite
    weights, since every tap is multiplied with padding somewhere. It also requires window sizes
    that are a multiple of the stride, so that all positions have the same number of taps.

    ```mlir
    %0 = relay.nn.conv2d_transpose %x, %w {strides = [2, 2], padding = [1, 1, 1, 1], …}
        : (tensor<1x8x6x6xf32>, tensor<8x3x4x4xf32>) -> tensor<1x3x12x12xf32>
    // becomes
    %1 = relay.nn.conv2d %x, %of_places {strides = [1, 1], padding = [1, 1, 1, 1], …}
        : (tensor<1x8x6x6xf32>, tensor<12x8x2x2xf32>) -> tensor<1x12x7x7xf32>
    %2 = tensor.extract_slice %1[0, 0, 1, 1] [1, 3, 6, 6] [1, 1, 1, 1] : …
    %3 = tensor.insert_slice %2 into %empty[0, 0, 1, 1] [1, 3, 6, 6] [1, 1, 2, 2] : …
    …  // the other three positions
    ```
    """

    name = "decompose-transposed-convolutions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            for block in host_blocks(op):
                for inner in in_time(block.ops):
                    if isinstance(inner, ConvTransposeOp) and _is_supported(inner):
                        _decompose(inner)


def _is_supported(op: ConvTransposeOp) -> bool:
    weight, output = op.weight.owner, tensor_type(op.output)
    if op.SPATIAL_RANK > 2 or not isinstance(weight, ConstantOp) or output.element_type != f32:
        return False
    if DYNAMIC in type_sizes(output) or 0 in type_sizes(output):
        return False
    strides, _, dilation = op.checked_window()
    axes = zip(shape_of(op.weight)[2:], strides, dilation, strict=True)
    is_even = all(size % stride == 0 and 1 in (stride, spread) for size, stride, spread in axes)
    return is_even and bool(np.isfinite(weight.array).all())


def _decompose(op: ConvTransposeOp) -> None:
    places = _Places.of(op)
    result = places.side_by_side(places.convolved())
    weight = op.weight.owner
    Rewriter.replace_op(op, (), [result])
    if isinstance(weight, ConstantOp):
        weight.erase_if_unused()


@dataclass(frozen=True)
class _Places:
    """Builder of the ops that replace a transposed convolution, inserted before it; a place is an
    output position within a stride.
    """

    op: ConvTransposeOp
    strides: tuple[int, ...]
    begins: tuple[int, ...]
    """Number of elements to remove from the beginning of the result, by axis."""
    dilation: tuple[int, ...]

    @staticmethod
    def of(op: ConvTransposeOp) -> _Places:
        """Returns the builder for an op."""
        strides, padding, dilation = op.checked_window()
        return _Places(op, strides, padding[: op.SPATIAL_RANK], dilation)

    @property
    def _sizes(self) -> tuple[Size, ...]:
        return sizes_of(self.op.output)[2:]

    @property
    def _taps(self) -> tuple[int, ...]:
        """Returns the number of taps of an output position along each axis."""
        window = shape_of(self.op.weight)[2:]
        return tuple(size // stride for size, stride in zip(window, self.strides, strict=True))

    @property
    def _builder(self) -> LinalgBuilder:
        return LinalgBuilder(self.op)

    def convolved(self) -> SSAValue:
        """Emits the convolution whose channels are the outputs of all positions."""
        weight = self.op.weight.owner
        assert isinstance(weight, ConstantOp)
        groups = self.op.groups.value.data
        array = derived_array(
            ("places", groups, self.strides), [weight.array], lambda: self._weights(weight.array)
        )
        before = [
            (taps - 1) * spread for taps, spread in zip(self._taps, self.dilation, strict=True)
        ]
        after = [
            operator.index(largest(ceildiv(size + begin, stride) - read, 0))
            for size, begin, stride, read in zip(
                self._sizes, self.begins, self.strides, sizes_of(self.op.data)[2:], strict=True
            )
        ]
        return self._builder.emit(
            CONV[self.op.SPATIAL_RANK](
                self.op.data,
                self._builder.constant(array, "places"),
                strides=[1] * len(before),
                padding=[*before, *after],
                dilation=list(self.dilation),
                groups=groups,
            )
        )

    def _weights(self, array: Array) -> Array:
        """Reorders weights so that the outputs of all positions are channels, and reverses the
        taps.

        `[I, O / groups, window…]` becomes `[groups * positions * O / groups, I / groups, taps…]`.
        """
        groups, rank = self.op.groups.value.data, len(self.strides)
        inputs, outputs, *_ = array.shape
        split = itertools.chain.from_iterable(zip(self._taps, self.strides, strict=True))
        apart = array.reshape(groups, inputs // groups, outputs, *split)
        taps, places = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
        ordered = np.flip(apart, tuple(taps)).transpose(0, *places, 2, 1, *taps)
        count = groups * outputs * prod(self.strides)
        return np.ascontiguousarray(ordered.reshape(count, inputs // groups, *self._taps))

    def side_by_side(self, value: SSAValue) -> SSAValue:
        """Interleaves the channels of all positions to the result."""
        b, output = self._builder, tensor_type(self.op.output)
        if set(self.strides) == {1}:
            return b.extract(value, [0, 0, *self.begins], sizes_of(self.op.output))
        outputs = shape_of(self.op.weight)[1]
        groups = self.op.groups.value.data
        is_depthwise = outputs == 1
        parts = ((0, groups),) if is_depthwise else ((one, outputs) for one in range(groups))
        result, count = b.empty(output), prod(self.strides)
        for group, channels in parts:
            for number, place in enumerate(itertools.product(*map(range, self.strides))):
                first = number if is_depthwise else (group * count + number) * outputs
                step = count if is_depthwise else 1
                read, written, sizes = self._along_axes(place)
                sizes = [sizes_of(value)[0], channels, *sizes]
                part = b.extract(value, [0, first, *read], sizes, [1, step, *[1] * len(read)])
                result = b.insert(
                    part, result, [0, group * outputs, *written], [1, 1, *self.strides]
                )
        return result

    def _along_axes(self, place: Sequence[int]) -> tuple[list[int], list[int], list[Size]]:
        """Returns, for a position and each axis, the slice of the convolution's result and where to
        insert it.

        The lists are the first elements to read, their offsets in the result, and their numbers.
        """
        read: list[int] = []
        written: list[int] = []
        sizes: list[Size] = []
        for one, stride, begin, size in zip(
            place, self.strides, self.begins, self._sizes, strict=True
        ):
            first = -((one - begin) // stride)
            target = first * stride + one - begin
            read.append(first)
            written.append(target)
            sizes.append(ceildiv(size - target, stride))
        return read, written, sizes
