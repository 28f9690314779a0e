"""Attention of the ONNX standard: https://onnx.ai/onnx/operators/onnx__Attention.html"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import elementwise, logic, reduce, transform
from byoc_mlir.dialects.relay.shape import asked
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast, scalar
from byoc_mlir.frontend.ops.heads import (
    added,
    expect_rank,
    merge_heads,
    products_of,
    scale_of,
    softcapped,
    split_heads,
    weighted,
)
from byoc_mlir.frontend.ops.nn import softmax
from byoc_mlir.frontend.ops.prefixes import up_to
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import Value, dtype_of

_SHORT_MASKS = 24
"""First opset with masks that cover fewer keys; in earlier opsets, their last dimension may be
1."""


@dataclass(frozen=True, kw_only=True)
class Attending:
    """Attributes of ONNX's Attention."""

    is_causal: int = 0
    kv_num_heads: int | None = None
    left_window_size: int = -1
    q_num_heads: int | None = None
    qk_matmul_output_mode: int = 0
    right_window_size: int = -1
    scale: float | None = None
    softcap: float = 0.0
    softmax_precision: int | None = None

    @property
    def after(self) -> int:
        """Returns the number of keys after its own position that a query sees; -1 for all keys."""
        return 0 if self.is_causal else self.right_window_size


@dataclass(frozen=True)
class _Keys:
    """Keys, values and mask as the node's operands, not split into heads yet.

    Keys and values are `[batch, heads, keys, size]` or `[batch, keys, heads * size]`.
    """

    key: Value
    value: Value
    mask: Value | None
    """Mask of rank 4; its last dimension is the number of keys, or 1."""
    filled: Value | None
    """Number of valid keys, `[batch, 1, 1, 1]`; `None` if all are valid."""
    offset: Value
    """Position of the first query, `[1, 1, 1, 1]`, or one for each batch entry."""

    @property
    def count(self) -> Size:
        """Returns the number of keys."""
        return self.key.sizes[-2]

    @property
    def is_of_one_size(self) -> bool:
        """True if keys, values and mask provably cover the same number of positions."""
        sizes = [self.value.sizes[-2], 1 if self.mask is None else self.mask.sizes[3]]
        return all(size in (1, self.count) for size in sizes)

    def first(self, context: NodeContext, count: Size) -> _Keys:
        """Returns the first `count` keys, values and mask columns."""
        key, value = (
            arith.section(context, each, each.rank - 2, 0, count) for each in (self.key, self.value)
        )
        mask = self.mask
        if mask is not None and mask.sizes[3] != 1:
            mask = arith.section(context, mask, 3, 0, count)
        return _Keys(key, value, mask, self.filled, self.offset)


@onnx_op("Attention", since=23, attributes=Attending)
def attention(
    context: NodeContext,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    past_key: Value | None = None,
    past_value: Value | None = None,
    nonpad_kv_seqlen: Value | None = None,
    *,
    attributes: Attending,
) -> Sequence[Value | None]:
    if (past_key is None) != (past_value is None):
        raise VerifyException("past_key and past_value must be given together")
    if past_key is not None and nonpad_kv_seqlen is not None:
        raise VerifyException("past_key and nonpad_kv_seqlen must not be given together")
    if not 0 <= attributes.qk_matmul_output_mode <= 3:
        mode = attributes.qk_matmul_output_mode
        raise VerifyException(f"qk_matmul_output_mode is {mode}, accepted are 0 to 3")
    for each, what in ((query, "Q"), (key, "K"), (value, "V")):
        expect_rank(each, what, 3, 4)
    q = _apart(context, query, attributes.q_num_heads, "Q")
    q = arith.multiply(context, q, _scale(attributes, q))
    past: Size = 0
    if past_key is not None and past_value is not None:
        past = past_key.sizes[2]
        key = _behind(context, past_key, key, attributes, "K")
        value = _behind(context, past_value, value, attributes, "V")
    filled = None
    offset = arith.reshape(context, context.size_constant(past), [1, 1, 1, 1])
    if nonpad_kv_seqlen is not None:
        filled = arith.reshape(context, nonpad_kv_seqlen, [query.sizes[0], 1, 1, 1])
        offset = arith.subtract(context, filled, context.size_constant(q.sizes[2]))
    mask = None if attn_mask is None else _mask(context, attn_mask, q, key.sizes[-2])
    keys = _Keys(key, value, mask, filled, offset)
    if context.wants(3):
        out, weights = _attended(context, q, keys, attributes)
    else:
        out, weights = _attended_to_filled(context, q, keys, attributes), None
    presents = [
        _apart(context, each, attributes.kv_num_heads, what) if context.wants(output) else None
        for output, each, what in ((1, key, "K"), (2, value, "V"))
    ]
    return [merge_heads(context, out) if query.rank == 3 else out, *presents, weights]


def _apart(context: NodeContext, data: Value, heads: int | None, what: str) -> Value:
    """Returns data as `[batch, heads, sequence, size]`."""
    return data if data.rank == 4 else split_heads(context, data, heads or 0, what)


def _behind(
    context: NodeContext, past: Value, new: Value, attributes: Attending, what: str
) -> Value:
    """Appends new keys or values to the cache of earlier calls."""
    new = _apart(context, new, attributes.kv_num_heads, what)
    return arith.concatenate(context, [past, new], 2)


def _scale(attributes: Attending, q: Value) -> float:
    return scale_of(0, q.number(3)) if attributes.scale is None else attributes.scale


def _mask(context: NodeContext, mask: Value, q: Value, keys: Size) -> Value:
    """Returns a mask of rank 4; keys after the mask's end are masked out.

    Raises:
        VerifyException: the mask has a wrong rank or element type.
    """
    expect_rank(mask, "attn_mask", 1, 2, 3, 4)
    if mask.dtype not in (np.dtype(np.bool_), q.dtype):
        raise VerifyException(f"attn_mask is of {mask.dtype}, accepted are bool and {q.dtype}")
    mask = arith.reshape(context, mask, [*[1] * (4 - mask.rank), *mask.sizes])
    size = mask.sizes[3]
    if (size == 1 and context.opset < _SHORT_MASKS) or asked().same(size, keys):
        return mask
    if context.opset < _SHORT_MASKS or not asked().at_most(size, keys):
        raise VerifyException(f"attn_mask is for {size} keys, but there are {keys}")
    unseen = 0.0 if mask.dtype == np.bool_ else -np.inf
    widths = [*[0] * 7, keys - size]
    return context.emit(transform.PadOp, mask, pad_width=widths, pad_value=unseen)


def _attended_to_filled(
    context: NodeContext, q: Value, keys: _Keys, attributes: Attending
) -> Value:
    """Returns the attention output over the keys up to the last valid key of any batch entry."""
    if keys.filled is None or 0 in keys.filled.sizes or not keys.is_of_one_size:
        return _attended(context, q, keys, attributes)[0]
    longest = arith.reduced(context, reduce.MaxOp, keys.filled, range(4), keepdims=False)
    longest = arith.maximum(context, longest, 1)
    longest = arith.minimum(context, longest, context.size_constant(keys.count))
    return up_to(
        context,
        longest,
        keys.count,
        lambda inner, seen: _attended(inner, q, keys.first(inner, seen), attributes)[0],
    )


def _attended(
    context: NodeContext, q: Value, keys: _Keys, attributes: Attending
) -> tuple[Value, Value]:
    """Returns the attention output, and the scores that `qk_matmul_output_mode` selects."""
    k = _apart(context, keys.key, attributes.kv_num_heads, "K")
    v = _apart(context, keys.value, attributes.kv_num_heads, "V")
    _check_heads(q, k, v)
    scores = products_of(context, q, k)
    bent = softcapped(context, scores, max(attributes.softcap, 0.0))
    bias = _bias(context, q, keys, attributes)
    shown = added(context, bent, bias)
    weights = cast(context, softmax(context, _precise(context, shown, attributes)), q.dtype)
    out = weighted(context, weights, v)
    is_blind = _blind(context, bias)
    if is_blind is not None:
        out, weights = (arith.where(context, is_blind, 0, each) for each in (out, weights))
    return out, (scores, bent, shown, weights)[attributes.qk_matmul_output_mode]


def _check_heads(q: Value, k: Value, v: Value) -> None:
    """Checks that the numbers of key and value heads divide the number of query heads.

    Raises:
        VerifyException: the head counts do not fit; the message names them.
    """
    queries, keys, values = (each.number(1) for each in (q, k, v))
    if keys < 1 or queries % keys or keys != values:
        raise VerifyException(
            f"Q, K and V have {queries}, {keys} and {values} heads; accepted are equal numbers"
            " for K and V, which divide that of Q"
        )


def _precise(context: NodeContext, scores: Value, attributes: Attending) -> Value:
    """Casts scores to the precision in which the softmax is computed."""
    wanted = attributes.softmax_precision
    if wanted is None:
        return scores
    return cast(context, scores, dtype_of(wanted))


def _bias(context: NodeContext, q: Value, keys: _Keys, attributes: Attending) -> Value | None:
    """Returns the mask to add to scores: negative infinity for keys that a query does not see."""
    conditions = list(_conditions(context, q, keys, attributes))
    mask: Value | np.generic | None = keys.mask
    if keys.mask is not None and keys.mask.dtype == np.bool_:
        conditions.append(keys.mask)
        mask = None
    if not conditions:
        return keys.mask
    seen = conditions[0]
    for condition in conditions[1:]:
        seen = context.emit(logic.LogicalAndOp, seen, condition)
    if seen.constant is not None and seen.constant.all():
        return None if mask is None else keys.mask
    shown = scalar(q, 0) if mask is None else mask
    return context.emit(elementwise.WhereOp, seen, shown, scalar(q, -np.inf))


def _conditions(
    context: NodeContext, q: Value, keys: _Keys, attributes: Attending
) -> Iterator[Value]:
    """Yields the conditions on positions that must all hold for a query to see a key."""
    places = arith.positions(context, keys.count, 3, 4)
    own = arith.add(context, keys.offset, arith.positions(context, q.sizes[2], 2, 4))
    before, after = attributes.left_window_size, attributes.after
    if keys.filled is not None and after != 0:  # a query at its own position counts
        yield context.emit(logic.LessOp, places, keys.filled)
    if after >= 0:
        yield context.emit(logic.LessEqualOp, places, arith.add(context, own, after))
    if before >= 0:
        yield context.emit(logic.GreaterEqualOp, places, arith.subtract(context, own, before))


def _blind(context: NodeContext, bias: Value | None) -> Value | None:
    """Returns a flag `[batch, heads, queries, 1]` for queries that see no key; `None` if there are
    none.
    """
    if bias is None:
        return None
    most = arith.reduced(context, reduce.MaxOp, bias, [3])
    is_blind = context.emit(logic.EqualOp, most, scalar(bias, -np.inf))
    if is_blind.constant is not None and not is_blind.constant.any():
        return None
    return is_blind
