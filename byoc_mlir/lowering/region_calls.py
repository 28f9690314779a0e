"""Attributes on a region's declaration that the host's code generation needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir import abi
from byoc_mlir.dialects.device_ops import region_space


@dataclass(frozen=True)
class RegionCall:
    """Properties of a region that callers need: the sizes of its slots, and the hooks that it
    defines.
    """

    symbol: str
    state_slots: int
    context_slots: int
    workspace_bytes: int
    space: str
    """Memory space of its tensors and of its workspace."""
    uploaded: tuple[int, ...]
    """Slots of its constants in the device's state, in the order of the arguments."""
    hooks: tuple[str, ...]
    """Hooks among `load`, `open`, `close` and `unload` for which the region has a function."""

    @property
    def function(self) -> str:
        """Returns the symbol of the function that runs the region, or starts it."""
        return abi.region_function(self.symbol, self.space)

    def attach(self, declaration: FuncOp) -> None:
        """Writes these fields as attributes on the region's declaration."""
        declaration.attributes[abi.WORKSPACE] = IntegerAttr(self.workspace_bytes, i64)
        declaration.attributes[abi.STATE_SLOTS] = IntegerAttr(self.state_slots, i64)
        declaration.attributes[abi.CONTEXT_SLOTS] = IntegerAttr(self.context_slots, i64)
        declaration.attributes[abi.HOOKS_DEFINED] = ArrayAttr(
            [StringAttr(hook) for hook in self.hooks]
        )
        if self.space != abi.HOST_SPACE:
            declaration.attributes[abi.MEMORY_SPACE] = StringAttr(self.space)
            declaration.attributes[abi.UPLOADED] = DenseArrayBase.from_list(i64, self.uploaded)

    @staticmethod
    def of(declaration: FuncOp) -> RegionCall:
        """Reads the attributes that `attach` wrote."""
        return RegionCall(
            declaration.sym_name.data,
            int_attribute(declaration, abi.STATE_SLOTS),
            int_attribute(declaration, abi.CONTEXT_SLOTS),
            int_attribute(declaration, abi.WORKSPACE),
            region_space(declaration),
            _ints(declaration, abi.UPLOADED),
            tuple(_strings(declaration, abi.HOOKS_DEFINED)),
        )


def region_functions(module: ModuleOp) -> Sequence[FuncOp]:
    """Returns the outlined regions of a module, definitions or declarations, in order."""
    return [op for op in _functions(module.body.block.ops) if abi.COMPILER in op.attributes]


def device_functions(module: ModuleOp) -> Sequence[FuncOp]:
    """Returns the declarations that stand for the devices of a module, in order."""
    return [op for op in _functions(module.body.block.ops) if abi.DEVICE in op.attributes]


def host_slots(module: ModuleOp) -> int:
    """Returns the number of the host's context slots, which precede the regions' slots."""
    return abi.FOUND_SLOT + 1 if abi.CHECKS in module.attributes else 0


def int_attribute(op: Operation, name: str) -> int:
    """Returns the value of an integer attribute, or 0 if it is absent."""
    attribute = op.attributes.get(name)
    return attribute.value.data if isinstance(attribute, IntegerAttr) else 0


def device_arenas(op: Operation) -> dict[str, int]:
    """Returns the size of the arena on each device, for a host function or the module."""
    arenas = op.attributes.get(abi.DEVICE_ARENAS)
    if not isinstance(arenas, DictionaryAttr):
        return {}
    sizes = cast(dict[str, IntegerAttr], arenas.data)
    return {space: size.value.data for space, size in sizes.items()}


def set_device_arenas(op: Operation, sizes: Mapping[str, int]) -> None:
    """Writes the attribute that `device_arenas` reads; the order is that of the arguments."""
    arenas = {space: IntegerAttr(size, i64) for space, size in sizes.items()}
    op.attributes[abi.DEVICE_ARENAS] = DictionaryAttr(arenas)


def _ints(op: FuncOp, name: str) -> tuple[int, ...]:
    attribute = op.attributes.get(name)
    return attribute.get_values() if isinstance(attribute, DenseArrayBase) else ()


def _functions(ops: Iterable[Operation]) -> Iterator[FuncOp]:
    return (op for op in ops if isinstance(op, FuncOp))


def _strings(op: FuncOp, name: str) -> Iterator[str]:
    attribute = op.attributes.get(name)
    for item in attribute if isinstance(attribute, ArrayAttr) else ():
        if isinstance(item, StringAttr):
            yield item.data
