"""Decompositions of operations by order: running extremes and products, ranks and searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from byoc_mlir.torch.elementwise import log_add_exp, operands
from byoc_mlir.torch.tensors import pytorch


def running(
    parts: Sequence[Any], dim: int, combine: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]
) -> Sequence[Any]:
    """Combines all elements up to each along an axis, in steps that double.

    Args:
        parts: tensors of one shape, whose size along the axis is known.
        dim: the axis.
        combine: associative function of earlier and later parts.
    """
    cat, shift, count = pytorch().cat, 1, parts[0].shape[dim]
    while shift < count:
        first = [one.narrow(dim, 0, count - shift) for one in parts]
        last = [one.narrow(dim, shift, count - shift) for one in parts]
        combined = zip(parts, combine(first, last), strict=True)
        parts = [cat((one.narrow(dim, 0, shift), both), dim) for one, both in combined]
        shift *= 2
    return parts


def is_running(x: Any, dim: int) -> bool:
    """True if a tensor has a known size of 2 or more along an axis."""
    return x.dim() > 0 and isinstance(x.shape[dim], int) and x.shape[dim] > 1


def cummax(x: Any, dim: int) -> Any:
    """Returns the greatest element so far and its last index; NaN once there is one."""
    return _extremes(x, dim, lambda later, earlier: later >= earlier)


def cummin(x: Any, dim: int) -> Any:
    """Returns the least element so far and its last index; NaN once there is one."""
    return _extremes(x, dim, lambda later, earlier: later <= earlier)


def _extremes(x: Any, dim: int, replaces: Callable[[Any, Any], Any]) -> Any:
    torch = pytorch()
    if not is_running(x, dim):
        return (x.clone(), torch.zeros_like(x, dtype=torch.int64)) if _is_known(x) else None
    sizes = [1] * x.dim()
    sizes[dim] = -1
    places = torch.arange(x.shape[dim]).reshape(sizes).expand(x.shape)

    def combine(first: Sequence[Any], last: Sequence[Any]) -> Sequence[Any]:
        (earlier, _), (later, _) = first, last
        taken = replaces(later, earlier)
        if x.is_floating_point():
            taken = later.isnan() | (~earlier.isnan() & taken)
        return [torch.where(taken, b, a) for a, b in zip(first, last, strict=True)]

    return tuple(running([x, places], dim, combine))


def _is_known(x: Any) -> bool:
    return all(isinstance(one, int) for one in x.shape)


def cumprod(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Returns the product of the elements so far."""
    torch = pytorch()
    is_integer = not x.is_floating_point()
    kind = dtype or (torch.int64 if is_integer else x.dtype)
    if x.is_complex() or not (is_running(x, dim) or _is_known(x)):
        return NotImplemented
    computed = torch.float32 if kind in (torch.float16, torch.bfloat16) else kind
    x = x.to(computed, copy=True)
    if is_running(x, dim):
        (x,) = running([x], dim, lambda first, last: [first[0] * last[0]])
    return x.to(kind)


def log_cumsum_exp(x: Any, dim: int) -> Any:
    """Returns logarithms of sums from the first element on."""
    if not is_running(x, dim):
        return x.clone() if not x.dim() or x.shape[dim] in (0, 1) else NotImplemented
    (sums, _) = operands(x, x)
    (sums,) = running([sums], dim, lambda a, b: [log_add_exp(a[0], b[0])])
    return sums.to(x.dtype, copy=True)


def kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """Returns the k-th least element along an axis, and its index."""
    if not x.dim():
        return x.clone(), pytorch().zeros_like(x, dtype=pytorch().int64)
    return tuple(
        one.narrow(dim, k - 1, 1).contiguous().squeeze(*_dropped(dim, keepdim))
        for one in _sorted(x, dim)
    )


def median(x: Any, dim: int, keepdim: bool = False) -> Any:
    """Returns the lower median along an axis, and its index; of NaNs, the first one."""
    torch = pytorch()
    if not x.dim():
        return kthvalue(x, 1)
    value, index = kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    if not x.is_floating_point():
        return value, index
    is_nan = x.isnan()
    found = is_nan.any(dim, keepdim)
    first = is_nan.to(torch.int32).argmax(dim, keepdim)
    return torch.where(found, torch.nan, value).to(x.dtype), torch.where(found, first, index)


def nanmedian(x: Any, dim: int, keepdim: bool = False) -> Any:
    """Returns the lower median along an axis among the numbers, and its index."""
    torch = pytorch()
    if not x.dim() or not x.is_floating_point():
        return median(x, dim, keepdim)
    rank = ((~x.isnan()).to(torch.int64).sum(dim, keepdim=True) - 1) // 2
    rank = torch.where(rank < 0, 0, rank)
    found = (one.gather(dim, rank) for one in _sorted(x, dim))
    return tuple(one.squeeze(*_dropped(dim, keepdim)) for one in found)


def of_all(form: Callable[..., Any]) -> Callable[[Any], Any]:
    """Returns a function for the value of `form` over all elements."""
    return lambda x: form(x.reshape(-1), 0)[0]


def _sorted(x: Any, dim: int) -> Sequence[Any]:
    return pytorch().ops.aten.sort.default(x, dim, False)


def _dropped(dim: int, keepdim: bool) -> Sequence[Any]:
    return ([],) if keepdim else (dim,)


def searchsorted(
    rows: Any,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """Returns for each number how many elements of its sorted row come before it."""
    torch, count = pytorch(), rows.shape[-1]
    if not isinstance(count, int):
        return NotImplemented
    kind = torch.int32 if out_int32 else torch.int64
    x = x if isinstance(x, torch.Tensor) else torch.full((), x, dtype=rows.dtype)
    if not count:
        return torch.zeros(x.shape, dtype=kind)
    rows = rows if sorter is None else rows.gather(-1, sorter)
    common = torch.result_type(rows, x)
    rows, x = rows.to(common), x.to(common)
    is_after = torch.gt if right or side == "right" else torch.ge
    before = torch.zeros(x.shape, dtype=torch.int64)
    for step in (1 << bit for bit in reversed(range(count.bit_length()))):
        further = before + step
        at = torch.where(further > count, count, further) - 1
        found = rows[at] if rows.dim() == 1 else rows.gather(-1, at)
        before = torch.where((further <= count) & ~is_after(found, x), further, before)
    return before.to(kind)


def bucketize(x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    """Returns the number of boundaries before each number."""
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def isin(x: Any, others: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    """Returns which elements are among `others`."""
    torch = pytorch()
    x, others = torch.as_tensor(x), torch.as_tensor(others).reshape(-1)
    count = others.shape[0]
    if not isinstance(count, int):
        return NotImplemented
    if not count:
        return torch.full(x.shape, invert)
    rows, _ = _sorted(others, 0)
    before = searchsorted(rows, x)
    found = rows[torch.where(before < count, before, count - 1)] == x
    return ~found if invert else found
