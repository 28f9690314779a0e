"""Layouts that an op may have for its source, its result and its other operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.dialects.func import ReturnOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import LAYOUTS, MEASURED, Choices
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.primitives.descriptions import LayoutOf
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.onednn.engine import engine

ANY_LAYOUT = (
    dnnl.BatchNormalizationOp,
    dnnl.BinaryOp,
    dnnl.ConcatOp,
    dnnl.ConvertOp,
    dnnl.ConvolutionOp,
    dnnl.DeconvolutionOp,
    dnnl.EltwiseOp,
    dnnl.LookupOp,
    dnnl.LrnOp,
    dnnl.PixelShuffleOp,
    dnnl.PoolingOp,
    dnnl.QuantizedAddOp,
    dnnl.QuantizedConvolutionOp,
    dnnl.ResamplingOp,
    dnnl.ShuffleOp,
    dnnl.SoftmaxOp,
)
"""Ops that support layouts other than row-major; all other ops require row-major operands."""

_LEAST_BLOCKED_CHANNELS = 8


def plain_layout(value: SSAValue) -> str:
    """Returns the row-major layout of a value."""
    return layouts.plain(len(shape_of(value)))


def is_planned(op: Operation) -> bool:
    """True if the layout of an op's result can be chosen."""
    return isinstance(op, ANY_LAYOUT) and 3 <= len(shape_of(op.results[0])) <= 5


def ways(op: Operation) -> Iterator[LayoutOf]:
    """Yields all combinations of layouts that may be chosen for an op's operands and result."""
    if not is_planned(op):
        yield dnnl.layout_of
        return
    for wanted in _layouts_of(op.results[0]):
        for source in sources(op, wanted):
            yield layouts_in(op, source, wanted)


def laid_out_operands(op: Operation) -> tuple[SSAValue, ...]:
    """Returns the operands whose layout can be chosen, that is, tensors with the rank of the
    result.
    """
    if isinstance(op, ReturnOp | dnnl.ViewOp | dnnl.PermuteOp | dnnl.ReorderOp):
        return tuple(op.operands)
    if isinstance(op, dnnl.WeightedWindowOp):
        return (op.arguments[0], *_full_rank(op))
    if isinstance(op, dnnl.PostOpsOp):
        extra = (
            op.primary[1:2]
            if isinstance(op, dnnl.BinaryOp | dnnl.MatmulOp | dnnl.QuantizedAddOp)
            else ()
        )
        return (op.primary[0], *_of_rank(op, extra), *_full_rank(op))
    if isinstance(op, dnnl.ConcatOp):
        return tuple(op.sources)
    if isinstance(op, dnnl.RecurrentOp):
        return (op.source, *op.states)
    return tuple(op.operands[:1])


def _full_rank(op: dnnl.PostOpsOp) -> tuple[SSAValue, ...]:
    return _of_rank(op, op.post_op_operands)


def _of_rank(op: Operation, values: Iterable[SSAValue]) -> tuple[SSAValue, ...]:
    rank = len(shape_of(op.results[0]))
    return tuple(value for value in values if len(shape_of(value)) == rank)


def read_as(op: Operation, operand: SSAValue, source: str, wanted: str) -> str:
    """Returns the layout in which an op reads an operand.

    The operand of a post-op has the layout of the result.
    """
    shape, result = shape_of(operand), shape_of(op.results[0])
    if (
        isinstance(op, dnnl.PostOpsOp)
        and operand in op.post_op_operands
        and operand is not op.primary[0]
    ):
        return wanted if shape == result else layouts.plain(len(shape))
    if isinstance(op, dnnl.BinaryOp) and shape != result:
        # oneDNN broadcasts along the pixels of a blocked tensor what is blocked like it
        return source if shape[1] == result[1] else layouts.plain(len(shape))
    return source


def layouts_in(op: Operation, source: str, wanted: str) -> Callable[[SSAValue], str]:
    """Returns the layouts of an op's operands and result.

    The op reads its source in layout `source`, and writes its result in layout `wanted`.
    """
    laid_out = {operand: read_as(op, operand, source, wanted) for operand in laid_out_operands(op)}
    laid_out[op.results[0]] = wanted
    return lambda value: laid_out.get(value) or dnnl.layout_of(value)


def layout_of_kind(kind: str, value: SSAValue) -> str:
    """Returns a value's layout of a kind such as NHWC; too few channels are not blocked."""
    rank, channels = len(shape_of(value)), shape_of(value)[1]
    if kind == "plain" or (kind != "channels_last" and channels < _LEAST_BLOCKED_CHANNELS):
        return layouts.plain(rank)
    if kind == "channels_last":
        return layouts.channels_last(rank)
    return layouts.blocked_channels(rank, 16 if kind == "blocked_16" else 8)


def kinds(choices: Choices) -> Sequence[str]:
    """Returns the kinds of layouts to try."""
    if choices.layout != MEASURED:
        return (choices.layout,)
    return LAYOUTS if engine().has_avx512 else LAYOUTS[:-1]


def sources(op: Operation, wanted: str) -> list[str]:
    """Returns the layouts in which an op may read its source, if it writes its result in layout
    `wanted`.
    """
    if isinstance(op, dnnl.ConvertOp):  # the library's copies do both at once
        return [wanted, *(one for one in _layouts_of(op.source) if one != wanted)]
    if not isinstance(op, dnnl.WeightedWindowOp):
        return [wanted]
    rank = len(shape_of(op.results[0]))
    source = op.arguments[0]
    same = _layout_like(wanted, source)
    return list(dict.fromkeys([same, layouts.plain(rank)]))


def _layouts_of(value: SSAValue) -> Iterable[str]:
    """Returns all layouts that a value may have."""
    return dict.fromkeys(layout_of_kind(kind, value) for kind in kinds(Choices()))


def _layout_like(wanted: str, value: SSAValue) -> str:
    """Returns the layout of `value` of the same kind as `wanted`; too few channels are not
    blocked.
    """
    rank, channels = len(shape_of(value)), shape_of(value)[1]
    if layouts.blocks(wanted) and channels < _LEAST_BLOCKED_CHANNELS:
        return layouts.plain(rank)
    return wanted
