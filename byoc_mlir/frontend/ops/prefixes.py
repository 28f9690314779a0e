"""Computations on a prefix of an axis, whose length is computed at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr

from byoc_mlir.abi import BINDS
from byoc_mlir.dialects.relay.control import BindOp
from byoc_mlir.dialects.relay.shape import at_most, binding, hint
from byoc_mlir.dims import LEAST_HINT, Size, SymbolInfo, ceildiv, smallest, symbol
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.value import Value

_STEP = 32
"""Granularity of prefix lengths, so that vectors and tiles are full."""

_LEAST = 4 * _STEP
"""Axis length below which the whole axis is computed."""


def up_to(
    context: NodeContext, number: Value, most: Size, make: Callable[[NodeContext, Size], Value]
) -> Value:
    """Builds a value with `make` for a prefix of an axis, and returns it.

    `make` gets the prefix's length: an expression between `number` and `most`, in a symbol that a
    function binds when it is called. For a short axis, the length is `most`.

    Args:
        number: one `i64`, 1 to `most`, which is computed at run time.
        make: function that builds the value, given a context and the length; the value's shape must
            not depend on the symbol.
    """
    if not at_most(_LEAST, most):
        return make(context, most)
    steps = arith.divide(context, arith.add(context, number, _STEP - 1), _STEP)
    expected = max(LEAST_HINT, hint(most) // _STEP // 2)
    last = ceildiv(most, _STEP)
    known = last if isinstance(last, int) else None
    info = SymbolInfo(f"first {most} by {_STEP}", 1, known, expected)

    def build(inner: NodeContext, _path: str, _given: Sequence[Value]) -> list[Value]:
        with binding(info):
            size = symbol(info.name) * _STEP
            is_full = isinstance(most, int) and most % _STEP == 0
            return [make(inner, size if is_full else smallest(size, most))]

    body = context.body("prefix", [steps], build)
    outside, (function,) = context.close_bodies([body])
    function.attributes[BINDS] = StringAttr(info.name)
    context.bodies.bound[info.name] = info
    (made,) = context.place(
        BindOp(
            context.builder.operand(arith.reshape(context, steps, ())),
            outside,
            result_types=body.results,
            body=SymbolRefAttr(function.sym_name),
        )
    )
    return made
