"""Builder of the small models that test a backend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import VarOperandDef

from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.dialects.relay.dialect import RELAY
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.testing.samples.relay_ops.sample import Range, Shape

OPS: dict[str, type[RelayOp]] = {
    kind.name.removeprefix("relay."): kind for kind in RELAY.operations if issubclass(kind, RelayOp)
}
"""Op classes by Relay name."""


SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 1.0, -1.0)
"""Values at which shortcuts show."""


@dataclass(frozen=True, eq=False)
class Case:
    """Small model with inputs, for one op or pattern that a backend claims."""

    subject: str
    label: str
    module: ModuleOp
    inputs: tuple[Array, ...]


class CaseBuilder:
    """Function under construction, with random inputs and constants."""

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed)
        self._block = Block()
        self._arrays: list[Array] = []

    def array(
        self, shape: Shape, dtype: str, values: Range | None, *, special: bool = False
    ) -> Array:
        """Returns random values of an element type, from a range or a normal distribution.

        Args:
            values: the smallest and the largest value.
            special: if true, many floats are NaN, infinities, zeros of both signs, and ones.
        """
        if dtype == "bool":
            return self._rng.random(shape) < 0.5
        kind = np.dtype(dtype)
        if kind.kind in "iu":
            low, high = values or ((0, 9) if kind.kind == "u" else (-9, 9))
            bounds = np.asarray(low, np.int64), np.asarray(high, np.int64)
            return self._rng.integers(*bounds, shape, endpoint=True).astype(kind)
        drawn = (
            self._rng.standard_normal(shape)
            if values is None
            else self._rng.uniform(*values, shape)
        )
        array = np.asarray(drawn, kind)
        if special:
            chosen = self._rng.integers(0, 4 * len(SPECIAL), shape)
            for number, value in enumerate(SPECIAL):
                array[chosen == number] = value
        return array

    def input(self, array: Array) -> SSAValue:
        """Adds an input to the model, which is fed `array`, and returns its value."""
        type_ = TensorType(relay_type(array.dtype), array.shape)
        self._arrays.append(array)
        return self._block.insert_arg(type_, len(self._block.args))

    def constant(self, array: Array) -> SSAValue:
        """Adds a constant with the elements of `array`, and returns its value."""
        op = ConstantOp.of(f"constant_{len(self._block.ops)}", array)
        self._block.add_op(op)
        return op.output

    def op(self, name: str, operands: Sequence[SSAValue], **attributes: PyValue) -> Operation:
        """Adds an op by its Relay name and returns it.

        Raises:
            VerifyException: operands and attributes do not fit together.
        """
        kind: Any = OPS[name]
        op: RelayOp = kind(*([operands] if _is_variadic(kind) else operands), **attributes)
        op.verify()
        self._block.add_op(op)
        return op

    def case(self, subject: str, label: str, results: Sequence[SSAValue]) -> Case:
        """Returns the finished model, which returns `results`, as a case."""
        self._block.add_op(ReturnOp(*results))
        types = [value.type for value in results]
        function = FuncOp("main", (list(self._block.arg_types), types), Region(self._block))
        return Case(subject, label, ModuleOp([function]), tuple(self._arrays))


def _is_variadic(kind: type[RelayOp]) -> bool:
    operands = kind.get_irdl_definition().operands
    return any(type(definition) is VarOperandDef for _, definition in operands)
