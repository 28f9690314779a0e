"""Work on the first elements of an axis, as many as the model finds when it runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr

from byoc_mlir.abi import BINDS
from byoc_mlir.dialects.relay.control import BindOp
from byoc_mlir.dialects.relay.shape import asked, asking
from byoc_mlir.dims import LEAST_HINT, Facts, Size, SymbolInfo, symbol
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.value import Value

_STEP = 32
"""Sizes are multiples of that, so that vectors and tiles are full."""

_LEAST = 4 * _STEP
"""Of shorter axes all is computed: there is little to gain."""


def up_to(
    context: NodeContext, number: Value, most: int, make: Callable[[NodeContext, Size], Value]
) -> Value:
    """What `make` makes of a size that is at least `number`, and `most` at most.

    The size is a symbol that a function binds when it is called. It is `most` where axes are short,
    and where other sizes are symbols.

    Args:
        number: one `i64`, 1 to `most`, which is computed at run time.
        make: makes a value of a shape of numbers, in the context that it gets.
    """
    if most < _LEAST or most % _STEP or asked().symbols:
        return make(context, most)
    steps = arith.divide(context, arith.add(context, number, _STEP - 1), _STEP)
    most_steps = most // _STEP
    info = SymbolInfo(f"first {most} by {_STEP}", 1, most_steps, max(LEAST_HINT, most_steps // 2))

    def build(inner: NodeContext, _path: str, _given: Sequence[Value]) -> list[Value]:
        with asking(Facts([info])):
            return [make(inner, symbol(info.name) * _STEP)]

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
