"""Primitives of recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.library import calls, layouts
from byoc_mlir.backends.dnnl.library.objects import find
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive, Operand, Types
from byoc_mlir.onednn import constants
from byoc_mlir.onednn.constants import FORWARD_INFERENCE, Arg

_FIRST_STATES = (Arg.SRC_ITER, Arg.SRC_ITER_C)
_LAST_STATES = (Arg.DST_ITER, Arg.DST_ITER_C)
_NO_FLAGS = 0


def lstm(op: dnnl.LstmOp, types: Types) -> DescribedPrimitive:
    no_peepholes, no_projection = None, None
    return _recurrent(op, types, "dnnl_lstm_forward", no_peepholes, no_projection)


def gru(op: dnnl.GruOp, types: Types) -> DescribedPrimitive:
    is_linear = op.linear_before_reset.value.data
    return _recurrent(op, types, "dnnl_lbr_gru_forward" if is_linear else "dnnl_gru_forward")


def _recurrent(op: dnnl.RecurrentOp, types: Types, kind: str, *between: None) -> DescribedPrimitive:
    """Describes the call of a recurrent layer, `kind`; `between` are the arguments after the
    weights.

    If oneDNN 3.1 would run reference code, the weights are not packed: the packed layout is opaque,
    and the reference code crashes on it.
    """
    asked = _described(op, types, kind, between, packed=True)
    found = find(asked.call)
    if found is not None and not found.implementation.startswith("ref"):
        return asked
    return _described(op, types, kind, between, packed=False)


def _described(
    op: dnnl.RecurrentOp, types: Types, kind: str, between: Sequence[None], *, packed: bool
) -> DescribedPrimitive:
    bias = op.arguments[3]
    first: list[calls.Argument] = [None] * op.STATES
    for index, state in enumerate(op.states):
        first[index] = types.of(state)
    weights = [_weights(types.of(value), packed) for value in op.arguments[1:3]]
    call = calls.PrimitiveCall(
        f"{kind}_primitive_desc_create",
        (
            calls.ENGINE,
            FORWARD_INFERENCE,
            constants.DIRECTIONS[op.direction.data],
            types.of(op.source),
            *first,
            *weights,
            *between,
            types.of(bias),
            *(types.of(result) for result in op.results),
            _NO_FLAGS,
            calls.Attributes(),
        ),
    )
    operands = (
        types.operand(Arg.SRC, op.source),
        *map(types.operand, _FIRST_STATES, op.states),
        *(
            Operand(argument, value, types.of(value), packed)
            for argument, value in zip((Arg.WEIGHTS, Arg.WEIGHTS_1), op.arguments[1:3], strict=True)
        ),
        types.operand(Arg.BIAS, bias),
        *map(types.operand, _LAST_STATES, op.results[1:]),
        types.operand(Arg.DST, op.results[0]),
    )
    return DescribedPrimitive(call, operands)


def _weights(stored: calls.MemoryDescriptor, packed: bool) -> calls.MemoryDescriptor:
    return calls.MemoryDescriptor(stored.dims, layouts.ANY) if packed else stored
