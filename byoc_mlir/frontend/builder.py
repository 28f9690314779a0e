"""Builders that the functions of `frontend.ops` use: for ops with locations, constants and
refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
import onnx
from numpy.typing import DTypeLike
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.locations import node_location
from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.dialects.relay.base import check_not_negative, sizes_of
from byoc_mlir.dialects.relay.control import ControlOp
from byoc_mlir.dialects.relay.evaluate import can_be_folded, evaluate_op
from byoc_mlir.dialects.relay.properties import PyValue
from byoc_mlir.dims import Size
from byoc_mlir.frontend.block_builder import BlockBuilder
from byoc_mlir.frontend.bodies import Bodies, Body, close_bodies
from byoc_mlir.frontend.sizes import Content, computed_sizes, size_array, size_content
from byoc_mlir.frontend.value import Array, Value, ValueNeeded

Argument: TypeAlias = Value | Sequence[Value]
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class NodeContext:
    """Interface of the functions of `frontend.ops` to the node that they import, and to the IR."""

    name: str
    op_type: str
    opset: int
    output_names: tuple[str, ...]
    """Names of the outputs up to the last one that is used; an omitted output has the name ""."""
    builder: BlockBuilder
    run_graph: Callable[[onnx.GraphProto, Sequence[Value], str], list[Value]]
    """Function that imports a subgraph for given inputs, with locations under a given name."""
    open_body: Callable[[NodeContext, Sequence[Attribute]], NodeContext]
    """Function that opens a block with arguments of given types, for a body of this node. Nodes
    that its `run_graph` imports have locations and report rows of their own, under the path given.
    """
    bodies: Bodies
    declared: Mapping[str, tuple[Size | None, ...]] = field(
        default_factory=dict[str, tuple[int | None, ...]]
    )
    """Shapes that the model declares for its outputs, by name; `None` for an unknown dimension."""

    def emit(
        self, op: type[RelayOp], *operands: Argument | np.generic, **properties: PyValue
    ) -> Value:
        """Adds an op and returns its first result.

        If all operands are constant, the op is folded instead, as by `emit_all`.
        """
        return self.emit_all(op, *operands, **properties)[0]

    def emit_all(
        self, op: type[RelayOp], *operands: Argument | np.generic, **properties: PyValue
    ) -> tuple[Value, ...]:
        """Adds an op and returns its results; if all operands are constant, folds the op
        instead.

        Raises:
            NodeRefused: an operand is no numeric tensor.
            VerifyException: operands and properties do not fit together.
        """
        groups = [self._group(operand) for operand in operands]
        folded = self._folded(op, groups, properties)
        if folded is not None:
            return folded
        formulas = self._formulas(op, groups, properties)
        if formulas and all(isinstance(content, np.ndarray) for content in formulas):
            return tuple(self.constant(content) for content in formulas)
        arguments = [[self.builder.operand(value) for value in group] for group in groups]
        created = _checked(op(*arguments, **cast(Any, properties)))
        self.builder.append(created, node_location(self.name))
        results = zip(created.results, formulas or [None] * len(created.results), strict=True)
        return tuple(self._emitted(result, groups, formula) for result, formula in results)

    def _emitted(
        self, result: SSAValue, groups: Sequence[Sequence[Value]], formula: Content | None
    ) -> Value:
        """Returns the value for a result; if the result may become a constant later, it gets a
        constant's name.
        """
        if not self.builder.is_late(result):
            return Value(self.name, result, formula=formula)
        name = next((value.name for group in groups for value in group), self.name)
        self.builder.name_late(result, name)
        return Value(name, result)

    def _folded(
        self,
        op: type[RelayOp],
        groups: Sequence[Sequence[Value]],
        properties: Mapping[str, PyValue],
    ) -> tuple[Value, ...] | None:
        """Returns an op's folded results, named after its first operand; `None` if the op is not
        folded.
        """
        values = [value for group in groups for value in group]
        known = [value.known for value in values if value.known is not None]
        if len(known) < len(values):
            return None
        results = _computed(_trial(op, groups, properties), known)
        if results is None:
            return None
        name, location = values[0].name, node_location(self.name)
        return tuple(Value(name, content, location) for content in results)

    def _formulas(
        self,
        op: type[RelayOp],
        groups: Sequence[Sequence[Value]],
        properties: Mapping[str, PyValue],
    ) -> Sequence[Content] | None:
        """Returns the formulas of an op's results if all operands are known or have formulas."""
        values = [value for group in groups for value in group]
        if all(value.formula is None for value in values):
            return None
        operands = [value.expressed for value in values if value.expressed is not None]
        if len(operands) < len(values):
            return None
        return self.bodies.iterations.formulas(_trial(op, groups, properties), operands)

    def body(
        self,
        label: str,
        arguments: Sequence[Value],
        build: Callable[[NodeContext, str, Sequence[Value]], Sequence[Value]],
    ) -> Body:
        """Builds a branch or body in a separate block.

        Args:
            label: name of the node's attribute with the branch or body.
            arguments: values of the first call; only their types matter.
            build: function that builds the results, given a context for the block, the path for
                names of nodes, and the arguments.
        """
        path = f"{self.name}/{label}"
        inner = self.open_body(self, [value.full_type for value in arguments])
        block = inner.builder.block
        formals = [
            Value(value.name, formal, inputs=value.inputs)
            for value, formal in zip(arguments, block.args, strict=True)
        ]
        results = build(inner, path, formals)
        block.add_op(ReturnOp(*map(inner.builder.operand, results)))
        return Body(path, block, inner.builder.captured, node_location(self.name))

    def close_bodies(self, bodies: Sequence[Body]) -> tuple[list[SSAValue], list[FuncOp]]:
        """Builds functions from bodies; returns the captured values as operands, and the
        functions.
        """
        outside, functions = close_bodies(bodies, self.bodies)
        return [self.builder.local(value) for value in outside], functions

    def place(self, op: ControlOp) -> list[Value]:
        """Adds an op that calls functions, and returns its results."""
        self.builder.append(op, node_location(self.name))
        return [Value(self.name, result) for result in op.results]

    def constant(self, content: Any, dtype: DTypeLike | None = None) -> Value:
        """Returns a constant that is located at this node."""
        return Value(self.name, np.asarray(content, dtype), node_location(self.name))

    def size_constant(self, sizes: Size | Sequence[Size]) -> Value:
        """Returns sizes as an `i64` constant of this node: a scalar, or a vector for a sequence."""
        content = size_content(size_array(sizes), np.dtype(np.int64))
        return Value(self.name, content, node_location(self.name))

    def derived(self, source: Value, content: Array) -> Value:
        """Returns a constant that was computed from the constant `source`; it keeps that constant's
        name.
        """
        return Value(source.name, content, source.location)

    def wants(self, output: int) -> bool:
        """True if the model uses output number `output` of the node."""
        return output < len(self.output_names) and self.output_names[output] != ""

    def declared_size(self, output: int, axis: int) -> Size | None:
        """Returns the size that the model declares for an output's axis, if any."""
        if not self.wants(output):
            return None
        shape = self.declared.get(self.output_names[output], ())
        return shape[axis] if axis < len(shape) else None

    def ints(self, value: Value, what: str) -> tuple[int, ...]:
        """Returns the integers of a constant operand.

        Raises:
            ValueNeeded: the operand is computed at run time.
        """
        return tuple(int(item) for item in self.known(value, what).reshape(-1))

    def sizes(self, value: Value, what: str) -> tuple[Size, ...]:
        """Returns the sizes in an operand that is constant, or that follows from the inputs'
        shapes.

        Raises:
            ValueNeeded: the operand is computed at run time.
        """
        return self.ints(value, what) if value.computed is None else value.computed.flat

    def count(self, value: Value, what: str, least: int = 0) -> int:
        """Returns the integer in a constant operand of one element.

        Raises:
            ValueNeeded: the operand is computed at run time.
            VerifyException: the operand has several elements, or its element is below `least`.
        """
        content = self.known(value, what).reshape(-1)
        if content.size != 1 or not np.isfinite(content[0]) or content[0] < least:
            raise VerifyException(
                f"{what} is {content.tolist()}, accepted is one number, {least} or more"
            )
        return int(content[0])

    def number(self, value: Value, what: str) -> Any:
        """Returns the element of a constant operand of one element, as a Python number.

        Raises:
            ValueNeeded: the operand is computed at run time.
            VerifyException: the operand does not have one element.
        """
        return only(self.known(value, what).reshape(-1).tolist(), what)

    def size(self, value: Value, what: str) -> Size:
        """Returns the only element of an operand that is constant, or that follows from the inputs'
        shapes.
        """
        return only(self.sizes(value, what), what)

    def known(self, value: Value, what: str) -> Array:
        """Returns the content of an operand that must be a constant.

        Raises:
            ValueNeeded: the operand is computed at run time.
        """
        if value.computed is not None:
            reason = f"{what} must be numbers, but is {list(value.computed.flat)}"
            raise ValueNeeded(reason, frozenset())
        if value.constant is None:
            reason = f"{what} must be a constant, but is computed at run time"
            raise ValueNeeded(reason, value.inputs)
        return value.constant

    def _group(self, operand: Argument | np.generic) -> Sequence[Value]:
        if isinstance(operand, Value):
            return [operand]
        if isinstance(operand, np.generic):
            return [self.constant(operand, operand.dtype)]
        return operand


def only(items: Sequence[_Item], what: str) -> _Item:
    """Returns the item of a sequence that must have one.

    Raises:
        VerifyException: the sequence has another length; the message calls it `what`.
    """
    if len(items) != 1:
        raise VerifyException(f"{what} has {len(items)} elements, accepted is one")
    return items[0]


def _trial(
    op: type[RelayOp], groups: Sequence[Sequence[Value]], properties: Mapping[str, PyValue]
) -> RelayOp:
    """Builds an op on placeholders for its operands, so that the real values get no new user.

    Raises:
        VerifyException: operands and properties do not fit together.
    """
    types = [value.full_type for group in groups for value in group]
    stand_ins = iter(Block(arg_types=types).args)
    arguments = [[next(stand_ins) for _ in group] for group in groups]
    return _checked(op(*arguments, **cast(Any, properties)))


def _computed(op: RelayOp, operands: Sequence[Content]) -> Sequence[Content] | None:
    """Returns the results of an op on known operands; `None` if it should not be folded."""
    arrays = [operand for operand in operands if isinstance(operand, np.ndarray)]
    if len(arrays) < len(operands):
        return computed_sizes(op, operands)
    return evaluate_op(op, arrays) if can_be_folded(op, arrays) else None


def _checked(op: RelayOp) -> RelayOp:
    for result in op.results:
        check_not_negative(sizes_of(result))
    return op
