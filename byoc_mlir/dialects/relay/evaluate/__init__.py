"""Evaluation of `relay` ops in NumPy, for constant folding and as the reference in tests.

Functions on arrays are in `numpy_ops`; functions of ops that nothing else needs are here. f16 and
bf16 are computed in f32 and rounded once per op.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from byoc_mlir.boundary import value_refused
from byoc_mlir.dialects.relay.base import RelayOp, one_size, tensor_type
from byoc_mlir.dialects.relay.checked import CheckedOp
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.control import BindOp, CallOp, ForOp, IfOp, LoopOp, WhileOp
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.families import OpTable
from byoc_mlir.dialects.relay.numbers import with_numbers
from byoc_mlir.dialects.relay.shape import known_shape
from byoc_mlir.errors import ByocError
from byoc_mlir.limits import spanned_bytes, take_constant_bytes
from byoc_mlir.tensors import Array

Semantics: TypeAlias = Callable[..., Array | Sequence[Array]]


def _if(op: IfOp, condition: Array, *arguments: Array) -> tuple[Array, ...]:
    then_branch, else_branch = op.functions()
    return _run_block((then_branch if condition else else_branch).body.block, arguments)


def _for(op: ForOp, *values: Array) -> tuple[Array, ...]:
    (body,) = op.functions()
    carried, invariant = values[: len(op.initial)], values[len(op.initial) :]
    stacked = _empty_rows(op)
    for iteration in range(operator.index(one_size(op.count))):
        results = _run_block(body.body.block, (np.array(iteration), *carried, *invariant))
        carried = _kept(results, len(carried), stacked, iteration)
    return (*carried, *stacked)


def _while(op: WhileOp, limit: Array, condition: Array, *values: Array) -> tuple[Array, ...]:
    (body,) = op.functions()
    carried, invariant = values[: len(op.initial)], values[len(op.initial) :]
    stacked = _empty_rows(op)
    most = int(limit) if op.most is None else min(int(limit), op.most)
    iteration = 0
    while condition and iteration < most:
        arguments = (np.array(iteration), *carried, *invariant)
        condition, *results = _run_block(body.body.block, arguments)
        carried = _kept(results, len(carried), stacked, iteration)
        iteration += 1
    return (*carried, *stacked)


def _empty_rows(op: LoopOp) -> list[Array]:
    types = [tensor_type(result) for result in op.stacked]
    return [np.zeros(known_shape(type_), numpy_dtype(type_.element_type)) for type_ in types]


def _kept(
    results: Sequence[Array], carried: int, stacked: Sequence[Array], iteration: int
) -> tuple[Array, ...]:
    """Stores the rows of an iteration; returns the carried values."""
    for array, row in zip(stacked, results[carried:], strict=True):
        array[iteration] = row
    return tuple(results[:carried])


def _checked(op: CheckedOp, data: Array, found: Array) -> Array:
    least, most = op.least.value.data, op.most.value.data
    if not least <= found <= most:
        raise value_refused(op.what.data, int(found), least, most)
    return data


def _bind(op: BindOp, number: Array, *arguments: Array) -> tuple[Array, ...]:
    (function,) = op.functions()
    bound = with_numbers(function, {op.bound(): int(number)})
    return _run_block(bound.body.block, (number, *arguments))


def _call(op: CallOp, *arguments: Array) -> tuple[Array, ...]:
    (function,) = op.functions()
    return _run_block(function.body.block, arguments)


_HERE: Mapping[type[RelayOp], Semantics] = {
    BindOp: _bind,
    CallOp: _call,
    CheckedOp: _checked,
    ForOp: _for,
    IfOp: _if,
    WhileOp: _while,
}

_TABLE = OpTable[Semantics](
    __name__,
    {
        "bits": ("transform",),
        "image": ("vision",),
        "index": ("index", "nn"),
        "logic": ("elementwise",),
        "nn": ("elementwise", "nn"),
        "onnx_node": ("onnx",),
        "pool": ("window",),
        "qnn_window": ("qnn",),
        "reduce": ("nn",),
        "size": ("transform",),
    },
)


def semantics_of(op: type[RelayOp]) -> Semantics | None:
    """Returns the evaluator of a class of ops; constants have none.

    It takes the op and its operands' arrays, and returns one array per result.
    """
    return _HERE.get(op) or _TABLE.get(op)


MAX_FOLDED_BYTES = 64 << 20
"""Maximum size of a folded result, unless the operands are as large together."""


def can_be_folded(
    op: RelayOp, operands: Sequence[Array], max_bytes: int = MAX_FOLDED_BYTES
) -> bool:
    """True if an op on known operands is folded at compile time.

    Ops with `IS_FOLDED = False`, and ops without operands, evaluator or static result types, are
    not folded. Nor are ops whose results are larger than `max_bytes` and larger than the operands,
    or exceed the limit `constant_bytes` in total.
    """
    if not op.IS_FOLDED:
        return False
    types = [tensor_type(result) for result in op.results]
    if not operands or not all(t.has_static_shape() for t in types):
        return False
    if semantics_of(type(op)) is None:
        return False
    size = sum(spanned_bytes(known_shape(t), numpy_dtype(t.element_type).itemsize) for t in types)
    read = sum(array.nbytes for array in {id(array): array for array in operands}.values())
    is_small = size <= max(max_bytes, read)
    return is_small and take_constant_bytes(size)


def evaluate(function: func.FuncOp, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Evaluates a function of `relay` ops, calls and composites; returns its results.

    Raises:
        ByocError: the function has an op without evaluator.
    """
    with np.errstate(all="ignore"):
        return _run_block(function.body.block, inputs)


def evaluate_op(op: RelayOp, operands: Sequence[Array]) -> tuple[Array, ...]:
    """Evaluates one op; the results have the types that the op declares.

    Raises:
        ByocError: the op has no evaluator.
    """
    if isinstance(op, ConstantOp):
        return (op.array,)
    semantics = semantics_of(type(op))
    if semantics is None:
        raise ByocError(f"the meaning of {op.name} is not known to the evaluator")
    with np.errstate(all="ignore"):
        found = semantics(op, *operands)
    if isinstance(found, np.ndarray | np.generic):  # numpy makes scalars of rank 0
        return (np.asarray(found),)
    return tuple(found)


def _run_block(block: Block, inputs: Sequence[Array]) -> tuple[Array, ...]:
    values: dict[SSAValue, Array] = dict(zip(block.args, inputs, strict=True))
    for op in block.ops:
        operands = [values[operand] for operand in op.operands]
        if op is block.last_op:
            return tuple(operands)
        values.update(zip(op.results, _run_op(op, operands), strict=True))
    raise ByocError("a block to evaluate ends in a terminator")


def _run_op(op: Operation, operands: Sequence[Array]) -> tuple[Array, ...]:
    if isinstance(op, RelayOp):
        return evaluate_op(op, operands)
    if isinstance(op, func.CallOp):
        callee = SymbolTable.lookup_symbol(op, op.callee)
        if not isinstance(callee, func.FuncOp):
            raise ByocError(f"there is no function {op.callee}")
        return _run_block(callee.body.block, operands)
    if op.name == "byoc.composite":
        return _run_block(op.regions[0].block, operands)
    raise ByocError(f"the meaning of {op.name} is not known to the evaluator")
