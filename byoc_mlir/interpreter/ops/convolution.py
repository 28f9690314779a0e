"""Convolutions of `f32`, forward and transposed, as matrix products.

Their results are NHWC in memory, and so are the results of NumPy's ops on them: a chain of
convolutions never converts back. ONNX's order of dimensions is a view.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from byoc_mlir.interpreter.convolution import ConvolutionSizes
from byoc_mlir.interpreter.folding import LEAST, MOST
from byoc_mlir.interpreter.kept_weights import KeptWeights
from byoc_mlir.interpreter.ops.errors import NotInterpretedError
from byoc_mlir.interpreter.ops.window import SAME, Placing, window_axes
from byoc_mlir.interpreter.products import matmul
from byoc_mlir.numpy_ops.window import Axis, correlate_transposed
from byoc_mlir.onednn.gemm import sgemm
from byoc_mlir.tensors import Array, aligned_empty, transposed

_CHUNK = 1 << 20
"""Bytes of window matrices and results that are computed at once, about the size of an L2 cache."""

_FEW = 8
"""Number of channels below which sums of products are too short: they take up to eight times as
long."""

_LONG, _MANY = 100_000_000, 1 << 10
"""Minimum MACs for oneDNN's code, whose creation takes 1 ms, and minimum positions above which that
code is faster than copying windows."""

_ONE = Axis(1, 1, 1, 1, 0, 0, 1)
"""Dimension of one element. With it, windows of one dimension lie in one line."""


class Conv:
    """ONNX's Conv of `f32`, computed row by row of the kernel.

    For each kernel row, the elements that windows read with it form a matrix; its products with the
    weights add up. oneDNN computes groups of few channels, and long-running convolutions: its code
    is created for the sizes, which takes longer than most convolutions run.

    Args:
        weights: constant weights, which are converted to another layout once, or `None`.

    Raises:
        NotInterpretedError: another type, or sizes that do not fit.
    """

    def __init__(self, x: object, weights: Array | None, bias: object = None):
        self._constant = weights
        self._matrix: Array | None = None
        self._arranged = KeptWeights([weights])

    def __call__(self, x: Array, w: Array, b: Array | None = None, **attributes: Any) -> Array:
        """Computes the convolution."""
        _check(x, w, b, len(w), attributes)
        group: int = attributes["group"]
        if x.shape[1] != w.shape[1] * group or w.shape[0] % group:
            raise NotInterpretedError(
                f"weights of {w.shape} in {group} groups for data of {x.shape}"
            )
        axes = window_axes(x.shape[2:], w.shape[2:], Placing.of(attributes))
        limits = _Limits(attributes.get(LEAST, -math.inf), attributes.get(MOST, math.inf))
        if not len(x):
            result = np.zeros((0, *(axis.count for axis in axes), len(w)), np.float32)
        elif _suits_onednn(len(x), w, axes, group):
            result = self._convolve_by_onednn(x, w, b, axes)
            limits.apply(result)
        elif group == 1 and all(map(_is_whole, axes)):
            result = _multiply(x, self._matrix_of(w), b, limits)
        else:
            result = _convolve(x, self._matrix_of(w), b, axes, group, limits)
        return _channels_second(result)

    def _matrix_of(self, weights: Array) -> Array:
        """Returns the weights as `[*kernel * channels, results]`."""
        if weights is self._constant and self._matrix is not None:
            return self._matrix
        found = transposed(np.moveaxis(weights, 1, -1).reshape(len(weights), -1))
        if weights is self._constant:  # another thread may put the same in its place
            self._matrix = found
        return found

    def _convolve_by_onednn(
        self, x: Array, weights: Array, bias: Array | None, axes: Sequence[Axis]
    ) -> Array:
        data, results, group = _channels_last(x), len(weights), x.shape[1] // weights.shape[1]
        sizes = ConvolutionSizes(
            data.shape,
            (group, results // group, *weights.shape[1:]),
            (len(x), *(axis.count for axis in axes), results),
            tuple(axis.stride for axis in axes),
            tuple(axis.dilation for axis in axes),
            tuple(axis.begin for axis in axes),
            tuple(axis.reach - axis.begin - axis.size for axis in axes),
        )
        primitive = sizes.primitive(has_bias=bias is not None)
        arranged = self._arranged.arranged(primitive, [weights])
        return primitive.run(data, arranged, None if bias is None else np.ascontiguousarray(bias))


@dataclass(frozen=True)
class _Limits:
    """Lower and upper limit of a result."""

    least: float = -math.inf
    most: float = math.inf

    def apply(self, result: Array) -> None:
        """Clips an array in place. NumPy's clip with two limits is faster than one maximum."""
        if self != _Limits():
            np.clip(result, np.float32(self.least), np.float32(self.most), out=result)


def _suits_onednn(images: int, weights: Array, axes: Sequence[Axis], group: int) -> bool:
    has_few = weights.shape[1] < _FEW
    if group > 1:
        return has_few
    places = images * math.prod(axis.count for axis in axes)
    is_copied = any(axis.kernel > 1 for axis in axes)
    long = _LONG // 8 if has_few else _LONG
    return is_copied and places >= _MANY and places * weights.size >= long


def _is_whole(axis: Axis) -> bool:
    """True if the windows along a dimension are its elements."""
    return axis.kernel == axis.stride == 1 and axis.count == axis.size


def _multiply(x: Array, weights: Array, bias: Array | None, limits: _Limits) -> Array:
    """Computes a convolution of single elements: a matmul."""
    data = _channels_last(x)
    result = aligned_empty((*data.shape[:-1], weights.shape[1]), np.float32)
    rows = result.reshape(-1, weights.shape[1])
    if bias is not None:
        rows[...] = bias
    sgemm(data.reshape(-1, len(weights)), weights, rows, beta=0.0 if bias is None else 1.0)
    limits.apply(rows)
    return result


def _convolve(
    x: Array,
    weights: Array,
    bias: Array | None,
    axes: Sequence[Axis],
    group: int,
    limits: _Limits,
) -> Array:
    if len(axes) == 1 and x.shape[1] // group < _FEW:
        return _convolve(x[:, :, np.newaxis], weights, bias, (_ONE, *axes), group, limits)[:, 0]
    first, *rest = axes
    lines = _windows(_padded(x, axes), rest)
    if first.kernel == 1 < first.stride:
        lines, first = lines[:, :: first.stride], replace(first, stride=1)
    results, channels = weights.shape[1], x.shape[1] // group
    weights = weights.reshape(first.kernel, -1, results)
    result = aligned_empty((len(x), *(axis.count for axis in axes), results), np.float32)
    line_bytes = lines[0, 0].nbytes * first.stride + result[0, 0].nbytes
    for images, start, stop in _chunks(len(x), first.count, line_bytes):
        end = (stop - 1) * first.stride + first.extent
        read = np.ascontiguousarray(lines[images, start * first.stride : end])
        part = result[images, start:stop].reshape(-1, results)
        if bias is not None:
            part[...] = bias
        for line, number in product(range(first.kernel), range(group)):
            data = read[:, line * first.dilation :: first.stride][:, : stop - start]
            data = data[..., number * channels : (number + 1) * channels]
            mine = slice(number * results // group, (number + 1) * results // group)
            sgemm(
                data.reshape(-1, weights.shape[1]),
                weights[line, :, mine],
                part[:, mine],
                beta=0.0 if bias is None and line == 0 else 1.0,
            )
        limits.apply(part)
    return result


def _windows(data: Array, axes: Sequence[Axis]) -> Array:
    """Returns a view of the windows, `[batch, size, *places, *kernel, channels]`, without copying.

    The data are contiguous and NHWC; each window lies within one row along the first spatial
    dimension.
    """
    batch, line, *steps, channel = data.strides
    return np.ndarray(
        (*data.shape[:2], *(a.count for a in axes), *(a.kernel for a in axes), data.shape[-1]),
        data.dtype,
        data,
        strides=(
            *(batch, line),
            *(step * axis.stride for step, axis in zip(steps, axes, strict=True)),
            *(step * axis.dilation for step, axis in zip(steps, axes, strict=True)),
            channel,
        ),
    )


def _chunks(images: int, lines: int, line_bytes: int) -> Iterator[tuple[slice, int, int]]:
    """Yields the images, and the range of their rows, to multiply at once."""
    at_once = max(1, _CHUNK // line_bytes)
    step = max(1, at_once // lines)
    for image, start in product(range(0, images, step), range(0, lines, min(at_once, lines))):
        yield slice(image, image + step), start, min(start + at_once, lines)


def _conv_transpose(x: Array, w: Array, b: Array | None = None, **attributes: Any) -> Array:
    """Computes ONNX's ConvTranspose of `f32`.

    Raises:
        NotInterpretedError: another type, or sizes that do not fit.
    """
    group: int = attributes["group"]
    _check(x, w, b, w.shape[1] * group, attributes)
    if x.shape[1] != len(w) or len(w) % group:
        raise NotInterpretedError(f"weights of {w.shape} in {group} groups for data of {x.shape}")
    axes = transposed_axes(x.shape[2:], w.shape[2:], attributes)
    result = correlate_transposed(x, w, axes, group, matmul)
    if b is not None:
        result += b.reshape(-1, *(1 for _ in axes))
    return result


def transposed_axes(
    sizes: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]
) -> list[Axis]:
    """Returns the windows of the forward convolution that a transposed one reverses.

    There is one window for each element of the data; `size` is the size of the result.

    Raises:
        NotInterpretedError: the attributes do not fit, the result is empty, or `output_shape` is
            larger than the result, which runtimes interpret differently.
    """
    rank, placing = len(sizes), Placing.of(attributes)
    strides, dilations, pads = placing.lists(kernel)
    extra = attributes["output_padding"] or [0] * rank
    wanted = None if placing.auto_pad == "VALID" else attributes["output_shape"]
    if placing.auto_pad in SAME and not wanted:
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    axes: list[Axis] = []
    for place in range(rank):
        spread = (kernel[place] - 1) * dilations[place] + 1
        whole = (sizes[place] - 1) * strides[place] + spread + extra[place]
        begin, end = pads[place], pads[place + rank]
        if wanted:
            total = whole - wanted[-rank:][place]
            begin, end = total // 2, total - total // 2
            if placing.auto_pad != "SAME_UPPER":
                begin, end = end, begin
        size = wanted[-rank:][place] if wanted else whole - begin - end
        if size < 1 or min(begin, end, extra[place]) < 0:
            raise NotInterpretedError(f"a result of {size} elements, with padding {pads}")
        axes.append(
            Axis(size, kernel[place], strides[place], dilations[place], begin, end, sizes[place])
        )
    return axes


def _check(
    x: Array, weights: Array, bias: Array | None, results: int, attributes: dict[str, Any]
) -> None:
    """Checks types and shapes of a convolution.

    Raises:
        NotInterpretedError: a type is not `f32`, or a shape does not fit.
    """
    if any(array is not None and array.dtype != np.float32 for array in (x, weights, bias)):
        raise NotInterpretedError(f"a convolution of {x.dtype}")
    kernel = attributes["kernel_shape"] or weights.shape[2:]
    if x.ndim < 3 or weights.ndim != x.ndim or not weights.size or weights.shape[2:] != (*kernel,):
        raise NotInterpretedError(
            f"data of {x.shape}, weights of {weights.shape}, a kernel of {kernel}"
        )
    if bias is not None and bias.shape != (results,):
        raise NotInterpretedError(f"a bias of {bias.shape} for {results} channels")


def _channels_last(x: Array) -> Array:
    moved = x.transpose(0, *range(2, x.ndim), 1)
    if moved.flags.c_contiguous or x.shape[1] >= _FEW:
        return np.ascontiguousarray(moved)
    found = aligned_empty(moved.shape, x.dtype)
    for channel in range(x.shape[1]):  # otherwise NumPy's innermost loop covers few channels
        found[..., channel] = x[:, channel]
    return found


def _channels_second(x: Array) -> Array:
    return x.transpose(0, -1, *range(1, x.ndim - 1))


def _padded(x: Array, axes: Sequence[Axis]) -> Array:
    """Returns the data in NHWC, padded with zeros as far as windows reach."""
    sizes = [axis.padded_size for axis in axes]
    if (*sizes,) == x.shape[2:]:
        return _channels_last(x)
    padded = np.zeros((len(x), *sizes, x.shape[1]), x.dtype)
    _channels_second(padded[:, *(axis.inside for axis in axes)])[...] = x
    return padded


OPS: Mapping[str, Callable[..., Any]] = {"Conv": Conv, "ConvTranspose": _conv_transpose}
"""Implementations by their names in ONNX."""
