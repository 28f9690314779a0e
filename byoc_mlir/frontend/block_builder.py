"""Builder of a block of `relay` ops: constants before their first user, captured outer values."""

from __future__ import annotations

import re

from xdsl.dialects.builtin import ArrayAttr, LocationAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, ShapeAttr, SizeAttr
from byoc_mlir.dialects.relay.element_types import relay_type
from byoc_mlir.dialects.relay.size import CONSTANT_NAME, SizesOp
from byoc_mlir.frontend.value import NodeRefused, Value


def name_hint(name: str) -> str:
    """Returns an ONNX name as a valid xDSL name hint: it starts with no digit and is not empty.

    Invalid characters become `_`. xDSL drops a trailing `_` with a number, so the hint for a name
    such as `_12` has something in front of it.
    """
    hint = re.sub(r"[^A-Za-z0-9_$.-]", "_", name)
    return f"v{hint}" if re.fullmatch(r"[0-9].*|(_[0-9]+)*", hint) else hint


class BlockBuilder:
    """Builder of a block, which appends ops, and inserts each constant before its first user.

    Values of an enclosing block become block arguments, which `captured` lists.
    """

    def __init__(self, block: Block, around: BlockBuilder | None = None):
        """Creates a builder; `around` builds the enclosing block."""
        self.block = block
        self._around = around
        self.captured: dict[SSAValue, BlockArgument] = {}
        self._constants: dict[Value, SSAValue] = {}
        self._late: set[SSAValue] = set()

    def append(self, op: Operation, location: LocationAttr) -> None:
        """Appends an op to the block."""
        op.location = location
        self.block.add_op(op)
        if isinstance(op, RelayOp) and not isinstance(op, ConstantOp):
            self._note_late(op)

    def name_late(self, value: SSAValue, name: str) -> None:
        """Records the name for a value that becomes a constant once all dimensions are known;
        ignores other values.
        """
        owner = value.owner
        if value not in self._late or not isinstance(owner, Operation):
            return
        names = owner.attributes.get(CONSTANT_NAME)
        known = (
            list(names.data)
            if isinstance(names, ArrayAttr)
            else [StringAttr("")] * len(owner.results)
        )
        known[owner.results.index(value)] = StringAttr(name)
        owner.attributes[CONSTANT_NAME] = ArrayAttr(known)
        value.name_hint = name_hint(name)

    def is_late(self, value: SSAValue) -> bool:
        """True if a value becomes a constant once all dimensions are known."""
        return value in self._late

    def _note_late(self, op: RelayOp) -> None:
        """Records the results of an op that depend on constants and dimensions only."""
        varying = [v for v in op.operands if not isinstance(v.owner, ConstantOp)]
        is_symbolic = any(isinstance(p, ShapeAttr | SizeAttr) for p in op.properties.values())
        if self._late.issuperset(varying) and (varying or is_symbolic):
            self._late.update(op.results)

    def operand(self, value: Value) -> SSAValue:
        """Returns the SSA value of `value`; creates the op of a constant at its first use."""
        if value.ssa is not None:
            return self.local(value.ssa)
        if value not in self._constants:
            op = self._constant_op(value)
            op.output.name_hint = name_hint(value.name)
            self.append(op, value.location)
            self.name_late(op.output, value.name)
            self._constants[value] = op.output
        return self._constants[value]

    def local(self, value: SSAValue) -> SSAValue:
        """Returns the value for use in this block: itself, or the argument that captures it.

        Raises:
            RuntimeError: the value is not visible in this block; see `check_visible`.
        """
        if _home(value) is self.block:
            return value
        if value not in self.captured:
            self.check_visible(value)
            argument = self.block.insert_arg(value.type, len(self.block.args))
            argument.name_hint = value.name_hint
            self.captured[value] = argument
        return self.captured[value]

    def check_visible(self, value: SSAValue) -> None:
        """Checks that a value is defined in this block or an enclosing one.

        Raises:
            RuntimeError: the value is defined in a body that does not enclose this block.
        """
        builder, home = self, _home(value)
        while builder is not None and builder.block is not home:
            builder = builder._around
        if builder is None:
            raise RuntimeError(
                "a value of a body is read outside of it; the function that imports the node is to"
                " add the op that reads it by the context of that body"
            )

    def _constant_op(self, value: Value) -> ConstantOp | SizesOp:
        if value.computed is not None:
            sizes, shape = value.computed.flat, value.computed.items.shape
            return SizesOp(values=sizes, newshape=shape, dtype=relay_type(value.computed.dtype))
        array = value.constant
        if array is None:
            raise NodeRefused(f"'{value.name}' is not a tensor")
        return ConstantOp.of(value.name, array)


def _home(value: SSAValue) -> Block | None:
    """Returns the block that defines a value."""
    owner = value.owner
    return owner if isinstance(owner, Block) else owner.parent
