"""Einsum as transposes, matmuls and sums."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay import nn, reduce, transform
from byoc_mlir.dialects.relay.elementwise import broadcast_shapes
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value

_ELLIPSIS = "0123456789"
_TERM = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")
"""Pattern of a term; `_ELLIPSIS` names the dimensions of its `...`, the last one first."""


@onnx_op("Einsum")
def einsum(context: NodeContext, *operands: Value, equation: str) -> Value:
    terms, output = _parse(equation, operands)
    pairs = [_diagonal(context, value, term) for value, term in zip(operands, terms, strict=True)]
    value, term = pairs[0]
    for position, (other, other_term) in enumerate(pairs[1:], start=1):
        later = "".join(rest for _, rest in pairs[position + 1 :]) + output
        value, term = _contracted(context, value, term, other, other_term, later)
    value, term = _summed(context, value, term, output)
    return arith.transpose(context, value, [term.index(letter) for letter in output])


def _parse(equation: str, operands: Sequence[Value]) -> tuple[list[str], str]:
    """Returns the term of each operand and of the output, with one letter for each dimension."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if not all(map(_TERM.fullmatch, (*terms, right))):
        raise VerifyException(
            f"equation is {equation!r}, accepted are terms of letters with at most one '...' each,"
            " as in 'ij,jk->ik'"
        )
    if len(terms) != len(operands):
        raise NodeRefused(f"equation '{equation}' does not have {len(operands)} terms")
    hidden = [
        value.rank - len(t.replace("...", "")) for value, t in zip(operands, terms, strict=True)
    ]
    if any(count and "..." not in t for count, t in zip(hidden, terms, strict=True)):
        raise NodeRefused(f"equation '{equation}' does not fit the ranks of its operands")
    full = [
        t.replace("...", _ELLIPSIS[:count][::-1]) for count, t in zip(hidden, terms, strict=True)
    ]
    most = _ELLIPSIS[: max(hidden)][::-1]
    if arrow:
        return full, right.replace("...", most)
    letters = "".join(terms).replace("...", "")
    return full, most + "".join(sorted(c for c in set(letters) if letters.count(c) == 1))


def _diagonal(context: NodeContext, value: Value, term: str) -> tuple[Value, str]:
    """Replaces an operand that repeats a letter by its diagonal along these dimensions."""
    for letter in dict.fromkeys(term):
        while term.count(letter) > 1:
            first = term.index(letter)
            second = term.index(letter, first + 1)
            order = [i for i in range(len(term)) if i not in (first, second)] + [first, second]
            value = arith.transpose(context, value, order)
            size, rest = value.number(-1), value.sizes[:-2]
            value = arith.reshape(context, value, (*rest, size * size))
            zeros, steps = [0] * len(rest), [1] * len(rest)
            value = context.emit(
                transform.StridedSliceOp,
                value,
                begin=[*zeros, 0],
                end=[*rest, size * size],
                strides=[*steps, size + 1],
            )
            term = "".join(term[i] for i in order[:-1])
    return value, term


def _summed(context: NodeContext, value: Value, term: str, kept: str) -> tuple[Value, str]:
    """Sums over the dimensions whose letters are not in `kept`."""
    axes = [axis for axis, letter in enumerate(term) if letter not in kept]
    if not axes:
        return value, term
    value = arith.reduced(context, reduce.SumOp, value, axes, keepdims=False)
    return value, "".join(letter for letter in term if letter in kept)


def _contracted(
    context: NodeContext, a: Value, a_term: str, b: Value, b_term: str, later: str
) -> tuple[Value, str]:
    """Contracts two operands by one matmul, which sums over the letters that are not in `later`."""
    a, a_term = _summed(context, a, a_term, b_term + later)
    b, b_term = _summed(context, b, b_term, a_term + later)
    shared = [letter for letter in a_term if letter in b_term]
    batch = [letter for letter in shared if letter in later]
    inner = [letter for letter in shared if letter not in later]
    rows = [letter for letter in a_term if letter not in shared]
    columns = [letter for letter in b_term if letter not in shared]
    a_sizes = dict(zip(a_term, a.sizes, strict=True))
    b_sizes = dict(zip(b_term, b.sizes, strict=True))
    sizes = {**a_sizes, **b_sizes}
    for letter in shared:
        (sizes[letter],) = broadcast_shapes([a_sizes[letter]], [b_sizes[letter]])
    left = _matrix(context, a, a_term, sizes, (batch, rows, inner))
    right = _matrix(context, b, b_term, sizes, (batch, inner, columns))
    product = context.emit(nn.MatmulOp, left, right)
    term = "".join([*batch, *rows, *columns])
    return arith.reshape(context, product, [sizes[letter] for letter in term]), term


def _matrix(
    context: NodeContext,
    value: Value,
    term: str,
    sizes: dict[str, Size],
    groups: tuple[list[str], list[str], list[str]],
) -> Value:
    """Returns `value` with its dimensions grouped into three: `[batch, rows, columns]`."""
    letters = [letter for group in groups for letter in group]
    value = arith.transpose(context, value, [term.index(letter) for letter in letters])
    value = arith.broadcast(context, value, [sizes[letter] for letter in letters])
    shape = [math.prod(sizes[letter] for letter in group) for group in groups]
    return arith.reshape(context, value, shape)
