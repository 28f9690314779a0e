"""Rules of the pass `simplify`: one function per simplification, in a table by kind of op."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import (
    ConstantOp,
    RelayOp,
    elementwise,
    nn,
    pool,
    qnn_window,
    transform,
    window,
)
from byoc_mlir.dialects.relay.base import ints, size_list, sizes_of
from byoc_mlir.dialects.relay.constant import derived_array
from byoc_mlir.dialects.relay.properties import to_attribute
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.tensors import Array, transposed
from byoc_mlir.transforms.overlapping_taps import overlapping_taps, overlapping_taps_of_pool
from byoc_mlir.transforms.rewriting import clip_bounds, constant_array, constant_name, replace_op

Simplified: TypeAlias = "SSAValue | Merged | None"
Rule: TypeAlias = "Callable[[Any], Simplified]"
F = TypeVar("F", bound=Rule)

_RULES: dict[type[Operation], list[Rule]] = {}


@dataclass(frozen=True)
class Merged:
    """Op that replaces several ops."""

    op: RelayOp
    replaced: tuple[Operation, ...]


class Replacements:
    """Record of the replaced ops, by the op that replaces them; the new op takes over their ONNX
    nodes.

    Locations are written once, at the end: an op that replaces thousands has a long location.
    """

    def __init__(self) -> None:
        self._replaced: dict[Operation, list[Operation]] = {}

    def simplify(self, op: Operation) -> None:
        """Replaces an op by an existing value or by one simpler op, if a rule applies."""
        simpler = next(filter(None, (rule(op) for rule in _RULES.get(type(op), ()))), None)
        if isinstance(simpler, SSAValue):
            owner = simpler.owner
            if isinstance(owner, RelayOp):
                self._replaced.setdefault(owner, [owner]).append(op)
            replace_op(op, [], [simpler])
        elif simpler is not None:
            simpler.op.location = op.location
            self._replaced[simpler.op] = list(simpler.replaced)
            replace_op(op, [simpler.op], simpler.op.results)
            self.simplify(simpler.op)

    def locate(self) -> None:
        """Gives each remaining op the locations of the ops that it replaced."""
        for op in self._replaced:
            if op.parent is not None and (origins := self._origins(op)):
                op.location = fused_location(origins)

    def _origins(self, op: Operation) -> Sequence[Operation]:
        """Returns the imported ops that an op stands for, in order."""
        found, seen, pending = list[Operation](), set[Operation](), [op]
        while pending:
            one = pending.pop()
            if one is not op and one.parent is not None:
                continue  # it remains, and stands for itself
            if one in seen or one not in self._replaced:
                found.append(one)
            else:
                seen.add(one)
                pending.extend(reversed(self._replaced[one]))
        return found


def _rule(*ops: type[RelayOp]) -> Callable[[F], F]:
    def register(function: F) -> F:
        for op in ops:
            _RULES.setdefault(op, []).append(function)
        return function

    return register


ReshapeLike: TypeAlias = transform.ReshapeOp | transform.SqueezeOp | transform.ExpandDimsOp


@_rule(transform.ReshapeOp, transform.SqueezeOp, transform.ExpandDimsOp)
def reshapes_compose(op: ReshapeLike) -> Simplified:
    """Rewrites `reshape(reshape(x))` to `reshape(x)`, or to `x` if the shapes are equal."""
    if op.data.type == op.output.type:
        return op.data
    before = op.data.owner
    if not isinstance(before, ReshapeLike):
        return None
    if before.data.type == op.output.type:
        return before.data
    return Merged(transform.ReshapeOp(before.data, newshape=sizes_of(op.output)), (before, op))


@_rule(transform.TransposeOp)
def transposes_compose(op: transform.TransposeOp) -> Simplified:
    """Merges nested transposes, and removes a transpose that keeps the order."""
    axes = ints(op.axes)
    if axes == tuple(range(len(axes))):
        return op.data
    before = op.data.owner
    if not isinstance(before, transform.TransposeOp):
        return None
    inner = ints(before.axes)
    both = [inner[axis] for axis in axes]
    return Merged(transform.TransposeOp(before.data, axes=both), (before, op))


@_rule(transform.TransposeOp)
def transpose_of_ones_is_a_reshape(op: transform.TransposeOp) -> Simplified:
    """Rewrites a transpose that only moves dimensions of size 1 to a reshape."""
    shape = sizes_of(op.data)
    moved = [axis for axis in ints(op.axes) if shape[axis] != 1]
    if moved != sorted(moved):
        return None
    return Merged(transform.ReshapeOp(op.data, newshape=sizes_of(op.output)), (op,))


@_rule(transform.ConcatenateOp)
def concatenate_of_one(op: transform.ConcatenateOp) -> Simplified:
    """Removes the concatenation of a single tensor."""
    return op.data[0] if len(op.data) == 1 else None


@_rule(transform.SplitOp)
def split_into_one(op: transform.SplitOp) -> Simplified:
    """Removes a split into one part whose type is the operand's type."""
    is_whole = len(op.outputs) == 1 and op.data.type == op.outputs[0].type
    return op.data if is_whole else None


@_rule(transform.BroadcastToOp, transform.PadOp, elementwise.CastOp)
def same_type(op: transform.BroadcastToOp | transform.PadOp | elementwise.CastOp) -> Simplified:
    """Removes broadcasts to the same shape, casts to the same type, and padding by zero widths."""
    is_shift = isinstance(op, transform.PadOp) and any(
        width != 0 for width in size_list(op.pad_width)
    )
    return op.data if op.data.type == op.output.type and not is_shift else None


@_rule(transform.StridedSliceOp)
def whole_slice(op: transform.StridedSliceOp) -> Simplified:
    """Removes a slice that takes all elements in order."""
    forward = all(stride == 1 for stride in ints(op.strides))
    return op.data if forward and op.data.type == op.output.type else None


def _is_all(value: SSAValue, number: float) -> bool:
    """True if `value` is a constant whose elements all equal `number`; float zeros in sign, too."""
    array = constant_array(value)
    if array is None or array.size == 0 or array.dtype.kind not in "iuf":
        return False
    same_sign = array.dtype.kind != "f" or bool(
        (np.signbit(array) == (math.copysign(1.0, number) < 0)).all()
    )
    return same_sign and bool((array == number).all())


def _other_operand(op: elementwise.BroadcastOp, neutral: Callable[[SSAValue], bool]) -> Simplified:
    if op.lhs.type == op.output.type and neutral(op.rhs):
        return op.lhs
    if op.rhs.type == op.output.type and neutral(op.lhs):
        return op.rhs
    return None


@_rule(elementwise.AddOp)
def add_zero(op: elementwise.AddOp) -> Simplified:
    """Removes `+ 0`; for floats only `+ -0.0`, since `-0.0 + 0.0` is `0.0`."""
    return _other_operand(op, lambda value: _is_all(value, -0.0))


@_rule(elementwise.SubtractOp)
def subtract_zero(op: elementwise.SubtractOp) -> Simplified:
    """Rewrites `x - 0` to `x`."""
    return op.lhs if op.lhs.type == op.output.type and _is_all(op.rhs, 0) else None


@_rule(elementwise.MultiplyOp)
def multiply_by_one(op: elementwise.MultiplyOp) -> Simplified:
    """Rewrites `x * 1` to `x`."""
    return _other_operand(op, lambda value: _is_all(value, 1))


@_rule(elementwise.DivideOp, elementwise.PowerOp)
def divide_by_one(op: elementwise.DivideOp | elementwise.PowerOp) -> Simplified:
    """Rewrites `x / 1` and `x ** 1` to `x`."""
    return op.lhs if op.lhs.type == op.output.type and _is_all(op.rhs, 1) else None


@_rule(elementwise.MaximumOp)
def maximum_with_zero_is_relu(op: elementwise.MaximumOp) -> Simplified:
    """Rewrites `maximum(x, 0)` to `relu(x)`."""
    data = _other_operand(op, lambda value: _is_all(value, 0))
    return Merged(nn.ReluOp(data), (op,)) if isinstance(data, SSAValue) else None


@_rule(nn.MatmulOp)
def product_with_a_weight_is_dense(op: nn.MatmulOp) -> Simplified:
    """Rewrites `a · w` to `dense(a, wᵀ)` for a constant matrix `w`."""
    weight = constant_array(op.b)
    if weight is None or weight.ndim != 2 or op.transpose_a.value.data:
        return None
    if op.transpose_b.value.data:
        return Merged(nn.DenseOp(op.a, op.b, out_dtype=op.out_dtype), (op,))
    turned = derived_array("transposed", [weight], lambda: transposed(weight))
    constant = _weight_before(op, turned)
    return Merged(nn.DenseOp(op.a, constant, out_dtype=op.out_dtype), (op,))


def _weight_before(op: Operation, array: Array) -> SSAValue:
    """Inserts a constant before an op, named after the op's weight."""
    constant = ConstantOp.of(constant_name(op, "weight"), array)
    constant.location = op.location
    Rewriter.insert_op(constant, InsertPoint.before(op))
    return constant.output


@_rule(elementwise.ClipOp, nn.ReluOp)
def clips_compose(op: elementwise.ClipOp | nn.ReluOp) -> Simplified:
    """Merges nested clips and relus; the outer bounds clip the inner ones."""
    before = op.data.owner
    if not isinstance(before, elementwise.ClipOp | nn.ReluOp):
        return None
    inner, outer = clip_bounds(before), clip_bounds(op)
    low, high = (min(max(bound, outer[0]), outer[1]) for bound in inner)
    if (low, high) == inner:
        return op.data
    if (low, high) == (0.0, math.inf):
        return Merged(nn.ReluOp(before.data), (before, op))
    return Merged(elementwise.ClipOp(before.data, a_min=low, a_max=high), (before, op))


def _spatial_padding(value: SSAValue, fill: float) -> tuple[transform.PadOp, list[int]] | None:
    """Returns the pad op that adds `fill` around the spatial dimensions of `value`, and the widths.

    The widths are in the order of `padding`: all begins, then all ends.
    """
    op = value.owner
    if not isinstance(op, transform.PadOp) or op.pad_mode.data != "constant":
        return None
    sizes = size_list(op.pad_width)
    if is_symbolic(sizes):
        return None
    widths = ints(op.pad_width)
    if any(widths[:4]) or min(widths) < 0 or op.pad_value.value.data != fill:
        return None
    return op, [*widths[4::2], *widths[5::2]]


def _padded_more(op: window.WindowOp, pad: transform.PadOp, widths: list[int]) -> Merged:
    """Returns the window op on the data before the pad op, with `widths` added to its own
    padding.
    """
    total = [own + more for own, more in zip(ints(op.padding), widths, strict=True)]
    properties = {**op.properties, "padding": total}
    new = type(op)(*[pad.data, *op.operands[1:]], **cast(Any, properties))
    return Merged(new, (pad, op))


@_rule(*window.CONV.values())
def pad_into_convolution(op: window.ConvOp) -> Simplified:
    """Moves zero padding into a convolution."""
    found = _spatial_padding(op.data, 0.0)
    return _padded_more(op, *found) if found else None


@_rule(*pool.AVG_POOL.values())
def pad_into_average_pool(op: pool.AvgPoolOp) -> Simplified:
    """Moves zero padding into an average pool, if its divisor counts all padding."""
    found = _spatial_padding(op.data, 0.0)
    counts = op.count_include_pad.value.data or not any(ints(op.padding))
    if not found or not counts or op.ceil_mode.value.data:
        return None
    new = _padded_more(op, *found)
    new.op.properties["count_include_pad"] = to_attribute(True)
    return new


@_rule(*pool.MAX_POOL.values())
def pad_into_max_pool(op: pool.MaxPoolOp) -> Simplified:
    """Moves padding with minus infinity into a max pool."""
    found = _spatial_padding(op.data, -math.inf)
    return _padded_more(op, *found) if found and not op.ceil_mode.value.data else None


@_rule(*window.CONV.values(), *qnn_window.CONV.values())
def taps_on_padding_are_cut(op: window.CorrelationOp) -> Simplified:
    """Removes a convolution's kernel taps that read only padding."""
    weight = constant_array(op.weight)
    if weight is None or not any(ints(op.padding)) or 0 in weight.shape:
        return None
    axes = overlapping_taps(op)
    part = (..., *(axis.taps for axis in axes))
    if weight[part].shape == weight.shape or not np.isfinite(weight).all():
        return None

    def cut() -> Array:
        return np.ascontiguousarray(weight[part])

    how = ("cut", *((axis.taps.start, axis.taps.stop) for axis in axes))
    constant = _weight_before(op, derived_array(how, [weight], cut))
    padding = [*(axis.before for axis in axes), *(axis.after for axis in axes)]
    properties = {**op.properties, "padding": padding}
    operands = [op.data, constant, *op.operands[2:]]
    return Merged(type(op)(*operands, **cast(Any, properties)), (op,))


@_rule(*pool.MAX_POOL.values(), *pool.AVG_POOL.values())
def windows_beyond_the_image_are_cut(op: pool.PoolOp) -> Simplified:
    """Removes a pool's taps that read only padding, if padding does not count."""
    is_average = isinstance(op, pool.AvgPoolOp)
    if is_average and op.count_include_pad.value.data and any(ints(op.padding)):
        return None
    axes = overlapping_taps_of_pool(op)
    size = [axis.taps.stop - axis.taps.start for axis in axes or ()]
    if axes is None or tuple(size) == ints(op.pool_size):
        return None
    new = {
        "pool_size": size,
        "padding": [*(axis.before for axis in axes), *(axis.after for axis in axes)],
        "ceil_mode": False,
        **({"count_include_pad": False} if is_average else {}),
    }
    return Merged(type(op)(op.data, **cast(Any, {**op.properties, **new})), (op,))
