"""Kernels that are compiled once for all the shapes that a model is compiled for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnrealizedConversionCastOp,
)
from xdsl.dialects.llvm import FuncOp as LLVMFuncOp
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from byoc_mlir.abi import KERNEL
from byoc_mlir.dialects.symbols import mentioned_symbols
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.kernel_structure import kernel_structure

MOST_OBJECTS = 16
"""How many object files are kept: those used last."""

_POINTER = LLVMPointerType()


@dataclass(frozen=True)
class KernelObject:
    """Object files with kernels that were compiled together."""

    codes: Sequence[bytes]
    externals: Sequence[str]
    """The functions that they call and do not have."""


@dataclass
class SeparatedKernels:
    """The kernels that a program calls: objects that have some of them, and the others."""

    module: ModuleOp = field(default_factory=lambda: ModuleOp([]))
    """Those that are not compiled yet, and what they call."""
    new: dict[Hashable, str] = field(default_factory=dict[Hashable, str])
    """Their symbols by structure."""
    known: list[KernelObject] = field(default_factory=list[KernelObject])
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """The symbol of each kernel, by the name that it had in the program."""


class SharedKernels:
    """The compiled kernels of one model, and functions that its regions share.

    One thread at a time may use it.
    """

    def __init__(self) -> None:
        self._kept: list[tuple[KernelObject, Mapping[Hashable, str]]] = []
        self._numbers = count()

    def separate(self, module: ModuleOp) -> SeparatedKernels:
        """Takes the kernels out of a module, which from here on calls them by pointers.

        Args:
            module: after `convert-linalg-to-loops` and `parametrise-kernels`.
        """
        separated = SeparatedKernels()
        kernels = [
            op for op in module.ops if isinstance(op, func.FuncOp) and KERNEL in op.attributes
        ]
        for kernel in kernels:
            structure = kernel_structure(kernel)
            if structure is not None:
                self._take(kernel, structure, separated)
        _call_by_pointers(module, separated.symbols)
        _move_helpers(module, separated.module)
        return separated

    def symbol_for(self, name: str) -> str:
        """A symbol that no other function of the model has."""
        return f"{name}_shared_{next(self._numbers)}"

    def keep(self, compiled: KernelObject, symbols: Mapping[Hashable, str]) -> None:
        """Makes new kernels known, by structure, now that they are compiled."""
        self._kept.append((compiled, symbols))
        del self._kept[:-MOST_OBJECTS]

    def is_new(self, name: str, structure: Hashable, into: SeparatedKernels) -> bool:
        """Whether code has to be compiled. Its symbol goes to `into`, and its object if it has one.

        Args:
            name: what the code is called in the program.
            structure: equal for equal code.
        """
        symbol = into.new.get(structure) or self._found(structure, into.known)
        into.symbols[name] = symbol or self.symbol_for(name)
        if symbol is None:
            into.new[structure] = into.symbols[name]
        return symbol is None

    def _take(self, kernel: func.FuncOp, structure: Hashable, into: SeparatedKernels) -> None:
        """Moves a kernel to the module of the new ones, or drops it when there is an equal one."""
        name = kernel.sym_name.data
        kernel.detach()
        if self.is_new(name, structure, into):
            kernel.properties["sym_name"] = StringAttr(into.symbols[name])
            kernel.properties.pop("sym_visibility", None)
            into.module.body.block.add_op(kernel)

    def _found(self, structure: Hashable, used: list[KernelObject]) -> str | None:
        """The symbol of a kernel that is compiled; its object goes to `used`."""
        for place, (compiled, symbols) in enumerate(self._kept):
            if structure in symbols:
                if compiled not in used:
                    used.append(compiled)
                    self._kept.append(self._kept.pop(place))
                return symbols[structure]
        return None


def _call_by_pointers(module: ModuleOp, symbols: Mapping[str, str]) -> None:
    """Renames what the functions call, and declares it: equal kernels may take other buffers."""
    declared: dict[str, Sequence[Attribute]] = {}
    for function in module.ops:
        if not isinstance(function, func.FuncOp):
            continue
        for block in function.body.blocks:
            for call in in_time(block.ops):
                if not isinstance(call, func.CallOp):
                    continue
                symbol = symbols.get(call.callee.root_reference.data)
                if symbol is not None:
                    call.properties["callee"] = SymbolRefAttr(symbol)
                    call.operands = [_pointer(value, call, block) for value in call.operands]
                    declared[symbol] = call.operand_types
    module.body.block.add_ops(
        func.FuncOp.external(symbol, types, []) for symbol, types in declared.items()
    )


def _pointer(value: SSAValue, call: Operation, block: Block) -> SSAValue:
    if not isinstance(value.type, MemRefType):
        return value
    cast = UnrealizedConversionCastOp.get([value], [_POINTER])
    block.insert_op_before(cast, call)
    return cast.results[0]


def _move_helpers(module: ModuleOp, kernels: ModuleOp) -> None:
    """Gives kernels the functions that they call; private ones that are left over go."""
    functions = {
        op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp | LLVMFuncOp)
    }
    helpers = {name for name, op in functions.items() if _is_helper(op)}
    called = reached((op for name, op in functions.items() if name not in helpers), functions)
    for name in helpers - called.keys():
        functions[name].detach()
    for name, function in reached(kernels.ops, functions).items():
        is_free = name in helpers and name not in called
        kernels.body.block.add_op(function if is_free else function.clone())


def _is_helper(op: Operation) -> bool:
    """Whether a function is a part of others: defined, and for nobody outside of the module."""
    if not isinstance(op, func.FuncOp) or not op.body.blocks:
        return False
    return op.sym_visibility is not None and op.sym_visibility.data == "private"


def reached(roots: Iterable[Operation], functions: Mapping[str, Operation]) -> dict[str, Operation]:
    """The functions that are mentioned in `roots` or in one of themselves, in order."""
    found: dict[str, Operation] = {}
    waiting = list(roots)
    while waiting:
        for name in mentioned_symbols(waiting.pop()):
            if name in functions and name not in found:
                found[name] = functions[name]
                waiting.append(functions[name])
    return found
