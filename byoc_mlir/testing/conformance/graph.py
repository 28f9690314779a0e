"""Building the small models that a backend is tried on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import VarOperandDef

from byoc_mlir.dialects.relay import RELAY, ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.dialects.relay.element_types import relay_type

OPS: dict[str, type[RelayOp]] = {
    kind.name.removeprefix("relay."): kind for kind in RELAY.operations if issubclass(kind, RelayOp)
}
"""Relay names to the classes of the ops."""


@dataclass(frozen=True)
class Case:
    """A small model with inputs, made for one op or pattern that a backend claims."""

    subject: str
    label: str
    module: ModuleOp
    inputs: tuple[Array, ...]


class GraphBuilder:
    """A function under construction, with random inputs and constants."""

    def __init__(self, seed: int = 0):
        self._rng = np.random.default_rng(seed)
        self._block = Block()
        self._arrays: list[Array] = []

    def array(self, shape: Sequence[int], dtype: str, values: tuple[float, float] | None) -> Array:
        """Random numbers of an element type, from a range or a normal distribution."""
        if dtype == "bool":
            return self._rng.random(shape) < 0.5
        if np.dtype(dtype).kind in "iu":
            return self._rng.integers(1, 9, shape).astype(dtype)
        if values is not None:
            return self._rng.uniform(*values, shape).astype(dtype)
        return np.asarray(self._rng.standard_normal(shape), dtype)

    def input(self, array: Array) -> SSAValue:
        """A new input of the model, which gets `array`."""
        type_ = TensorType(relay_type(array.dtype), array.shape)
        self._arrays.append(array)
        return self._block.insert_arg(type_, len(self._block.args))

    def constant(self, array: Array) -> SSAValue:
        """A new constant."""
        op = ConstantOp.of(f"constant_{len(self._block.ops)}", array)
        self._block.add_op(op)
        return op.output

    def op(self, name: str, operands: Sequence[SSAValue], **attributes: PyValue) -> Operation:
        """A new op by its Relay name.

        Raises:
            VerifyException: operands and attributes do not fit together.
        """
        kind: Any = OPS[name]
        op: RelayOp = kind(*([operands] if _is_variadic(kind) else operands), **attributes)
        op.verify()
        self._block.add_op(op)
        return op

    def case(self, subject: str, label: str, results: Sequence[SSAValue]) -> Case:
        """The finished model, which returns `results`."""
        self._block.add_op(ReturnOp(*results))
        types = [value.type for value in results]
        function = FuncOp("main", (list(self._block.arg_types), types), Region(self._block))
        return Case(subject, label, ModuleOp([function]), tuple(self._arrays))


def _is_variadic(kind: type[RelayOp]) -> bool:
    operands = kind.get_irdl_definition().operands
    return any(isinstance(definition, VarOperandDef) for _, definition in operands)
