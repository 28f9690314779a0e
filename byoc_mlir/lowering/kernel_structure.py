"""What makes two kernels the same machine code."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.dialects import arith, func, llvm, memref, vector
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

_INDEXED = (
    memref.LoadOp,
    memref.StoreOp,
    memref.CastOp,
    vector.LoadOp,
    vector.StoreOp,
    vector.MaskedLoadOp,
    vector.MaskedStoreOp,
    func.CallOp,
)
"""Ops to which the length of a flat buffer is all the same."""


def kernel_structure(kernel: func.FuncOp) -> Hashable:
    """A key that is equal for kernels, in loops, that become the same machine code.

    Names, locations and the order of constants do not count, nor do the sizes of buffers where the
    code does not depend on them.

    Returns:
        The key; `None` for a kernel that refers to a global, which means something else elsewhere.
    """
    if any(isinstance(op, memref.GetGlobalOp | llvm.AddressOfOp) for op in kernel.walk()):
        return None
    return kernel.arg_attrs, _Structure().of(kernel.body.block)


class _Structure:
    """Values are known by the number of their definition, constants by their value."""

    def __init__(self) -> None:
        self._known: dict[SSAValue, Hashable] = {}
        self._count = 0

    def of(self, block: Block) -> Hashable:
        """The key of a block and all that is in it."""
        for arg in block.args:
            self._define(arg)
        body: list[Hashable] = []
        for op in block.ops:
            if isinstance(op, arith.ConstantOp):
                self._known[op.result] = op.value
            else:
                body.append(self._op(op))
        return tuple(_argument(arg.type) for arg in block.args), tuple(body)

    def _op(self, op: Operation) -> Hashable:
        operands = tuple(self._known[operand] for operand in op.operands)
        for result in op.results:
            self._define(result)
        if _is_flat_view(op):
            return op.name, operands, op.properties["static_offsets"], _flat(op.results[0].type)
        type_of = _flat if isinstance(op, _INDEXED) else _exact
        buffers = (value.type for value in op.operands if isinstance(value.type, MemRefType))
        return (
            op.name,
            operands,
            tuple(map(type_of, buffers)),
            tuple(map(type_of, op.result_types)),
            tuple(op.properties.items()),
            tuple(op.attributes.items()),
            tuple(self.of(region.block) for region in op.regions if region.blocks),
        )

    def _define(self, value: SSAValue) -> None:
        self._known[value] = self._count
        self._count += 1


def _argument(type_: Attribute) -> Hashable:
    return ("buffer", type_.element_type) if isinstance(type_, MemRefType) else type_


def _is_flat_view(op: Operation) -> bool:
    """Whether an op sees a dense buffer as one dimension: in machine code, the same pointer."""
    if not isinstance(op, memref.ReinterpretCastOp) or len(op.operands) > 1:
        return False
    return _is_flat(op.result.type)


def _is_flat(type_: Attribute) -> bool:
    return (
        isinstance(type_, MemRefType)
        and len(type_.get_shape()) == 1
        and isinstance(type_.layout, NoneAttr)
    )


def _flat(type_: Attribute) -> Hashable:
    """A type without the length of a dense buffer of one dimension."""
    if isinstance(type_, MemRefType) and _is_flat(type_):
        return "flat", type_.element_type
    return type_


def _exact(type_: Attribute) -> Hashable:
    return type_
