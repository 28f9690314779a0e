"""Builder of modules in the `llvm` dialect: functions, declarations and tables."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BytesAttr,
    DenseIntOrFPElementsAttr,
    ModuleOp,
    TensorType,
    UnitAttr,
    i8,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region

from byoc_mlir.abi import VECTORISED
from byoc_mlir.dialects.symbols import symbol_of
from byoc_mlir.kernels import ops
from byoc_mlir.kernels.builder import VOID, FunctionBuilder
from byoc_mlir.kernels.parallel import add_parallel_for


class ModuleBuilder:
    """Builder of a module, which declares each external symbol once.

    Args:
        module: module to add to, whose symbols `has` knows; by default, a new one.
        has_threads: True if there is an OpenMP runtime; without it, loops run on one thread.
        numbers: values of a kernel's parameters, if its functions are specialised for them.
    """

    def __init__(
        self,
        module: ModuleOp | None = None,
        *,
        has_threads: bool = True,
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.module = ModuleOp([]) if module is None else module
        self.has_threads = has_threads
        self.numbers = numbers
        self._names = {symbol_of(op) for op in self.module.ops}

    def function(
        self,
        name: str,
        parameters: Sequence[Attribute],
        *,
        result: Attribute = i32,
        internal: bool = False,
        is_inlined: bool = True,
    ) -> FunctionBuilder:
        """Begins a new function."""
        linkage = ops.INTERNAL if internal else ops.EXTERNAL
        attributes = {} if is_inlined else {"no_inline": UnitAttr()}
        return self._begin(name, llvm.LLVMFunctionType(parameters, result), linkage, attributes)

    def cold(self, name: str, parameters: Sequence[Attribute]) -> FunctionBuilder:
        """Begins a new internal function without a result, which runs rarely.

        LLVM compiles the function without optimisations.
        """
        type_ = llvm.LLVMFunctionType(parameters, VOID)
        attributes = {"no_inline": UnitAttr(), "optimize_none": UnitAttr()}
        return self._begin(name, type_, ops.INTERNAL, attributes)

    def vectorised(self, name: str, parameters: Sequence[Attribute]) -> FunctionBuilder:
        """Begins a new internal function without a result, whose code is already vectorised.

        LLVM compiles the function without optimisations. Use this method only if measurements show
        that the code is as fast so.
        """
        type_ = llvm.LLVMFunctionType(parameters, VOID)
        return self._begin(name, type_, ops.INTERNAL, {VECTORISED: UnitAttr()})

    def _begin(
        self,
        name: str,
        type_: llvm.LLVMFunctionType,
        linkage: llvm.LinkageAttr,
        attributes: Mapping[str, Attribute] = MappingProxyType({}),
    ) -> FunctionBuilder:
        block = Block(arg_types=type_.inputs.data)
        function = ops.function(name, type_, linkage, Region(block))
        function.attributes |= attributes
        self._add(name, function)
        return FunctionBuilder(self, block)

    def adopt(self, function: llvm.FuncOp | llvm.GlobalOp) -> str:
        """Adds a function or a variable that was built elsewhere. Returns its symbol."""
        self._add(function.sym_name.data, function)
        return function.sym_name.data

    def define_parallel_for(self) -> str:
        """Defines the functions of `byoc_mlir.kernels.parallel`, unless the module has them.

        Returns the symbol of the one to call.
        """
        return add_parallel_for(self)

    def declare(self, name: str, parameters: Sequence[Attribute], result: Attribute) -> None:
        """Declares an external function, unless the module has it."""
        if name not in self._names:
            type_ = llvm.LLVMFunctionType(parameters, result)
            self._add(name, ops.function(name, type_, ops.EXTERNAL, Region()))

    def table(self, name: str, words: Sequence[int]) -> str:
        """Defines a constant array of 64-bit words. Returns its symbol."""
        data = BytesAttr(struct.pack(f"<{len(words)}q", *words))
        value = DenseIntOrFPElementsAttr(TensorType(i64, [len(words)]), data)
        type_ = llvm.LLVMArrayType(len(words), i64)
        self._add(name, ops.constant_global(name, type_, ops.INTERNAL, {"value": value}))
        return name

    def data(self, name: str, content: bytes) -> str:
        """Defines a constant array of bytes, aligned as an array of words. Returns its symbol."""
        value = DenseIntOrFPElementsAttr(TensorType(i8, [len(content)]), BytesAttr(content))
        type_ = llvm.LLVMArrayType(len(content), i8)
        self._add(name, ops.constant_global(name, type_, ops.INTERNAL, {"value": value}))
        return name

    def text(self, name: str, content: str) -> str:
        """Defines a text that ends in a zero byte. Returns its symbol."""
        return self.data(name, content.encode() + b"\0")

    def variable(self, name: str, size: int) -> str:
        """Defines `size` bytes of memory, zero at first. Returns its symbol."""
        zeros = DenseIntOrFPElementsAttr(TensorType(i8, [size]), BytesAttr(bytes(size)))
        type_ = llvm.LLVMArrayType(size, i8)
        self._add(name, llvm.GlobalOp(type_, name, ops.INTERNAL, value=zeros))
        return name

    def external(self, name: str) -> str:
        """Declares a constant that is defined elsewhere, unless the module has it; returns its
        symbol.
        """
        if name not in self._names:
            self._add(name, ops.constant_global(name, i8, ops.EXTERNAL, {}))
        return name

    def has(self, name: str) -> bool:
        """True if the module defines or declares a symbol."""
        return name in self._names

    def _add(self, name: str, op: Operation) -> None:
        self._names.add(name)
        self.module.body.block.add_op(op)
