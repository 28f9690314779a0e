"""Decompositions of pools whose windows adapt to the size of the result, or with own divisors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from byoc_mlir.torch.tensors import pytorch

_MOST_WINDOWS = 1024
"""Maximum number of windows that are computed one by one."""


def adaptive_max_pool(x: Any, sizes: Sequence[int]) -> Any:
    """Returns the greatest element of each window, and its index in its image."""
    torch, rank = pytorch(), len(sizes)
    image = x.shape[-rank:]
    if not _is_small(image, sizes):
        return NotImplemented
    values: list[Any] = []
    places: list[Any] = []
    for window in product(*map(_windows, image, sizes)):
        value, at = _cut(x, window).flatten(-rank).max(-1)
        values.append(value)
        places.append(_place(at, window, image))
    shape = (*x.shape[:-rank], *sizes)
    return torch.stack(values, -1).reshape(shape), torch.stack(places, -1).reshape(shape)


def adaptive_avg_pool(x: Any, sizes: Sequence[int]) -> Any:
    """Returns the mean of each window."""
    if not _is_small(x.shape[-len(sizes) :], sizes):
        return NotImplemented
    for axis, size in zip(range(-len(sizes), 0), sizes, strict=True):
        windows = _windows(x.shape[axis], size)
        parts = [x.narrow(axis, at, length).mean(axis, keepdim=True) for at, length in windows]
        x = pytorch().cat(parts, axis)
    return x


def _is_small(image: Sequence[Any], sizes: Sequence[Any]) -> bool:
    known = all(isinstance(one, int) for one in (*image, *sizes))
    return known and 0 < prod(sizes) <= _MOST_WINDOWS and 0 not in image


def _windows(size: int, count: int) -> Iterator[tuple[int, int]]:
    """Yields begin and length of each window along an axis."""
    for number in range(count):
        begin = number * size // count
        yield begin, -(-(number + 1) * size // count) - begin


def _cut(x: Any, window: Sequence[tuple[int, int]]) -> Any:
    for axis, (begin, length) in zip(range(-len(window), 0), window, strict=True):
        x = x.narrow(axis, begin, length)
    return x


def _place(at: Any, window: Sequence[tuple[int, int]], image: Sequence[int]) -> Any:
    """Returns the index in the image of an index in a window."""
    place, stride = 0, 1
    for (begin, length), size in zip(reversed(window), reversed(image), strict=True):
        place = place + (at % length + begin) * stride
        at, stride = at // length, stride * size
    return place


def pool_with_divisor(form: Any) -> Callable[..., Any]:
    """Returns an average pool with its own divisor, as a pool of padded windows."""

    def pooled(
        x: Any,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor: int | None = None,
    ) -> Any:
        if divisor is None:
            return NotImplemented
        rank = int(form._schema.name[-2])
        kernel, padding = (list(one) * (rank // len(one)) for one in (kernel, padding))
        stride = list(stride) * (rank // max(len(stride), 1)) or kernel
        pads: list[int] = []
        for axis in reversed(range(rank)):
            size, pad = x.shape[axis - rank], padding[axis]
            extra = -(size + 2 * pad - kernel[axis]) % stride[axis] if ceil_mode else 0
            pads += [pad, pad + extra if extra < kernel[axis] else pad]
        padded = pytorch().ops.aten.constant_pad_nd.default(x, pads, 0.0)
        return form(padded, kernel, stride) * (prod(kernel) / divisor)

    return pooled
