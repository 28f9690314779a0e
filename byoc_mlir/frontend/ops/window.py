"""Convolutions, and conversion of ONNX's window attributes; there is one relay op per spatial
rank.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from byoc_mlir.dialects.relay import RelayOp, qnn_window, transform, window
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.dims import GREATEST_SIZE, Size, ceildiv, largest
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value


@dataclass(frozen=True, kw_only=True)
class WindowAttributes:
    """Attributes of ONNX's windows."""

    auto_pad: str = "NOTSET"
    dilations: Sequence[int] | None = None
    pads: Sequence[int] | None = None
    strides: Sequence[int] | None = None


@dataclass(frozen=True, kw_only=True)
class ConvAttributes(WindowAttributes):
    """Attributes of convolutions."""

    group: int = 1
    kernel_shape: Sequence[int] | None = None


@dataclass(frozen=True)
class Window:
    """Window with resolved padding: one entry per spatial dimension."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def padding(self) -> tuple[int, ...]:
        """Returns all begins, then all ends."""
        return self.begins + self.ends


def resolve_window(
    sizes: Sequence[Size], kernel: Sequence[int], attributes: WindowAttributes
) -> Window:
    """Converts ONNX's attributes to a window over spatial dimensions of the given `sizes`.

    Raises:
        NodeRefused: `auto_pad` is unknown, or a list has the wrong length.
    """
    rank, auto_pad = len(sizes), attributes.auto_pad
    strides = tuple(attributes.strides or [1] * rank)
    dilations = tuple(attributes.dilations or [1] * rank)
    pads = tuple(attributes.pads or [0] * (2 * rank))
    for what, values, length in (
        ("kernel_shape", kernel, rank),
        ("strides", strides, rank),
        ("dilations", dilations, rank),
        ("pads", pads, 2 * rank),
    ):
        if len(values) != length:
            raise NodeRefused(f"{what} must have {length} entries, found {list(values)}")
    if any(value < 1 for value in (*strides, *dilations, *kernel)):
        raise NodeRefused("kernel_shape, strides and dilations must be at least 1")
    begins, ends = pads[:rank], pads[rank:]
    if auto_pad == "VALID":
        begins = ends = (0,) * rank
    elif auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        needed = [*map(operator.index, _needed_for_same(sizes, kernel, strides, dilations))]
        begins, ends = _halves(needed, more_at_end=auto_pad == "SAME_UPPER")
    elif auto_pad != "NOTSET":
        raise NodeRefused(
            f"auto_pad is '{auto_pad}', accepted are NOTSET, SAME_UPPER, SAME_LOWER and VALID"
        )
    return Window(tuple(kernel), strides, dilations, begins, ends)


def leaving_once(place: Window, sizes: Sequence[Size]) -> Window:
    """Shortens strides to just beyond the padded data, if they are longer; the result is the
    same.

    A pool's only window may exceed the padded data by less than a stride.
    """
    longest: list[int] = []
    for axis, size in enumerate(sizes):
        length = size if isinstance(size, int) else GREATEST_SIZE
        length += max(0, place.begins[axis]) + max(0, place.ends[axis])
        extent = (place.kernel[axis] - 1) * place.dilation[axis] + 1
        longest.append(max(length, extent) + 1)
    return replace(place, strides=tuple(map(min, place.strides, longest)))


def _needed_for_same(
    sizes: Sequence[Size], kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> list[Size]:
    """Returns the padding for `ceil(size / stride)` windows along each axis."""
    return [
        largest(0, (ceildiv(size, stride) - 1) * stride + (extent - 1) * dilation + 1 - size)
        for size, stride, extent, dilation in zip(sizes, strides, kernel, dilations, strict=True)
    ]


A = TypeVar("A", bound=WindowAttributes)


def padded_for_same(
    context: NodeContext, data: Value, kernel: Sequence[int], attributes: A, fill: float
) -> tuple[Value, A]:
    """Pads data whose `SAME` padding is symbolic; returns it with attributes without padding.

    If the op can pad by itself, data and attributes are returned unchanged.

    Raises:
        NodeRefused: the attributes are invalid; see `resolve_window`.
    """
    sizes, unpadded = data.sizes[2:], replace(attributes, auto_pad="VALID")
    if attributes.auto_pad not in ("SAME_UPPER", "SAME_LOWER") or not is_symbolic(sizes):
        return data, attributes
    place = resolve_window(sizes, kernel, unpadded)
    needed = _needed_for_same(sizes, kernel, place.strides, place.dilation)
    if not is_symbolic(needed):
        return data, attributes
    widths: list[Size] = [0, 0, 0, 0]
    for total in needed:
        less, more = total // 2, total - total // 2
        widths += (less, more) if attributes.auto_pad == "SAME_UPPER" else (more, less)
    return context.emit(transform.PadOp, data, pad_width=widths, pad_value=fill), unpadded


def _halves(totals: Sequence[int], *, more_at_end: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    small = tuple(total // 2 for total in totals)
    large = tuple(total - total // 2 for total in totals)
    return (small, large) if more_at_end else (large, small)


def by_rank(table: Mapping[int, type[RelayOp]], data: Value) -> type[RelayOp]:
    """Returns the op for the data's number of spatial dimensions.

    Raises:
        NodeRefused: no op has that number of dimensions.
    """
    spatial = data.rank - 2
    if spatial not in table:
        raise NodeRefused(f"{spatial} spatial dimensions are not supported, only 1 to 3")
    return table[spatial]


def _cropped(context: NodeContext, data: Value, place: Window) -> tuple[Value, Window]:
    """Crops the data as negative padding requires; returns it with a window without negative
    padding.
    """
    if min(place.padding) >= 0:
        return data, place
    widths = [0, 0, 0, 0]
    for begin, end in zip(place.begins, place.ends, strict=True):
        widths += [min(begin, 0), min(end, 0)]
    data = context.emit(transform.PadOp, data, pad_width=widths)
    begins, ends = (tuple(max(0, pad) for pad in side) for side in (place.begins, place.ends))
    return data, Window(place.kernel, place.strides, place.dilation, begins, ends)


@onnx_op("Conv", attributes=ConvAttributes)
def conv(
    context: NodeContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    attributes: ConvAttributes,
) -> Value:
    kernel = attributes.kernel_shape or weight.shape[2:]
    data, attributes = padded_for_same(context, data, kernel, attributes, 0.0)
    result = convolve(context, data, weight, attributes)
    return arith.biased(context, result, bias, 1)


def convolve(
    context: NodeContext,
    data: Value,
    weight: Value,
    attributes: ConvAttributes,
    zero_points: Sequence[Value] = (),
) -> Value:
    """Builds a convolution without bias.

    With zero points, data and weight are integers, and the result is `i32`.
    """
    op = by_rank(qnn_window.CONV if zero_points else window.CONV, data)
    kernel = attributes.kernel_shape or weight.shape[2:]
    place = leaving_once(resolve_window(data.sizes[2:], kernel, attributes), data.sizes[2:])
    data, place = _cropped(context, data, place)
    return context.emit(
        op,
        data,
        weight,
        *zero_points,
        strides=place.strides,
        padding=place.padding,
        dilation=place.dilation,
        groups=attributes.group,
    )


@onnx_op("ConvTranspose", attributes=ConvAttributes)
def conv_transpose(
    context: NodeContext,
    data: Value,
    weight: Value,
    bias: Value | None = None,
    *,
    attributes: ConvAttributes,
    output_padding: Sequence[int] | None = None,
    output_shape: Sequence[int] | None = None,
) -> Value:
    op = by_rank(window.CONV_TRANSPOSE, data)
    sizes, kernel = data.sizes[2:], attributes.kernel_shape or weight.shape[2:]
    auto_pad, written = attributes.auto_pad, replace(attributes, auto_pad="NOTSET")
    place = resolve_window(sizes, kernel, written)
    extra = tuple(output_padding or [0] * len(sizes))
    wanted: Sequence[Size] | None = output_shape
    if auto_pad in ("SAME_UPPER", "SAME_LOWER") and wanted is None:
        wanted = [size * stride for size, stride in zip(sizes, place.strides, strict=True)]
    if auto_pad == "VALID":
        place = resolve_window(sizes, kernel, attributes)
    elif wanted is not None:
        place, extra = _fitted(place, sizes, wanted[-len(sizes) :], extra, auto_pad)
    result = context.emit(
        op,
        data,
        weight,
        strides=place.strides,
        padding=place.padding,
        dilation=place.dilation,
        output_padding=extra,
        groups=attributes.group,
    )
    return arith.biased(context, result, bias, 1)


def _fitted(
    place: Window,
    sizes: Sequence[Size],
    output: Sequence[Size],
    extra: Sequence[int],
    auto_pad: str,
) -> tuple[Window, tuple[int, ...]]:
    """Returns the padding and output padding that give the requested output shape."""
    totals = [
        operator.index(stride * (size - 1) + more + (extent - 1) * dilation + 1 - wanted)
        for stride, size, more, extent, dilation, wanted in zip(
            place.strides, sizes, extra, place.kernel, place.dilation, output, strict=True
        )
    ]
    begins, ends = _halves(
        [max(0, total) for total in totals], more_at_end=auto_pad == "SAME_UPPER"
    )
    grown = tuple(more + max(0, -total) for more, total in zip(extra, totals, strict=True))
    return Window(place.kernel, place.strides, place.dilation, begins, ends), grown
