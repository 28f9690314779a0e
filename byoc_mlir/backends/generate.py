"""Bringing the three kinds of generated code to one: native functions and what they call."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32, i64
from xdsl.dialects.func import FuncOp
from xdsl.dialects.llvm import LLVMPointerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from byoc_mlir.backends.base import (
    Backend,
    Blob,
    CodegenContext,
    CSource,
    NativeCode,
    OpDetail,
    weight_symbol,
)
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.errors import BackendError
from byoc_mlir.runtime.program import LibrarySymbol, PythonRegion, TensorSpec

_POINTER = LLVMPointerType()


@dataclass(frozen=True)
class RegionCode:
    """A region's native code, and the functions outside of the object code that it calls."""

    symbol: str
    backend: str
    native: NativeCode
    library_symbols: tuple[LibrarySymbol, ...] = ()
    python_regions: tuple[PythonRegion, ...] = ()

    @property
    def hooks(self) -> tuple[str, ...]:
        """Of `load`, `open`, `close` and `unload`: those the code defines."""
        defined = {
            op.sym_name.data for op in self.native.module.walk() if isinstance(op, llvm.FuncOp)
        }
        hooks = ("load", "open", "close", "unload")
        return tuple(hook for hook in hooks if f"{self.symbol}_{hook}" in defined)

    @property
    def bound_symbols(self) -> frozenset[str]:
        """External functions that the runtime binds one by one, not by looking in libraries."""
        return frozenset(item.symbol for item in (*self.library_symbols, *self.python_regions))

    @property
    def details(self) -> Sequence[OpDetail]:
        """What the backend says about its primitives."""
        return self.native.details


def generate(backend: Backend, region: FuncOp, context: CodegenContext) -> RegionCode:
    """Asks a backend for a region's code.

    Raises:
        BackendError: what it returned is not usable; any other exception is the backend's own.
    """
    symbol = region.sym_name.data
    code = cast(object, backend.codegen(region, context))  # foreign code may return anything
    if isinstance(code, NativeCode):
        return _checked(RegionCode(symbol, backend.name, code))
    if isinstance(code, CSource):
        return _from_c(backend, region, code)
    if isinstance(code, Blob):
        return _from_blob(backend, region, code)
    raise BackendError(
        f"backend '{backend.name}' returned a {type(code).__name__} for region @{symbol};"
        " expected NativeCode, CSource or Blob"
    )


def _checked(code: RegionCode) -> RegionCode:
    symbols = [op.sym_name.data for op in code.native.module.walk() if isinstance(op, llvm.FuncOp)]
    if code.symbol not in symbols:
        raise BackendError(
            f"backend '{code.backend}' generated no function @{code.symbol} for region"
            f" @{code.symbol}; found {', '.join(symbols) or 'none'}"
        )
    return code


def _from_c(backend: Backend, region: FuncOp, code: CSource) -> RegionCode:
    symbol = region.sym_name.data
    weights = [op.weight for op in region.walk() if isinstance(op, ConstantOp)]
    external = LibrarySymbol(f"{symbol}_c", _compile_c(code, symbol), symbol)
    inputs, outputs = _counts(region)
    block = _run_block(inputs + outputs)
    constants = [llvm.AddressOfOp(weight_symbol(weight.digest), _POINTER) for weight in weights]
    block.add_ops(constants)
    block.add_op(llvm.CallOp(external.symbol, *constants, *block.args[2:]))
    _return_status(block, 0)
    declarations: list[Operation] = [
        _declaration(external.symbol, len(weights) + inputs + outputs, None),
        *_weight_declarations(weights),
    ]
    module = ModuleOp([*declarations, _run_function(symbol, block)])
    native = NativeCode(module, constants=tuple(weights), details=code.details)
    return RegionCode(symbol, backend.name, native, library_symbols=(external,))


def _weight_declarations(weights: Sequence[Weight]) -> list[Operation]:
    symbols = dict.fromkeys(weight_symbol(weight.digest) for weight in weights)
    return [
        llvm.GlobalOp(llvm.LLVMArrayType(0, i64), symbol, "external", constant=True)
        for symbol in symbols
    ]


def _from_blob(backend: Backend, region: FuncOp, code: Blob) -> RegionCode:
    """`@R` puts its pointers into two arrays on the stack and calls the Python function."""
    symbol = region.sym_name.data
    external = f"{symbol}_python"
    inputs, outputs = _counts(region)
    block = _run_block(inputs + outputs)
    data = block.args[2:]
    arrays = [_pointer_array(block, data[:inputs]), _pointer_array(block, data[inputs:])]
    call = llvm.CallOp(external, *arrays, return_type=i32)
    block.add_ops([call, llvm.ReturnOp(call.results[0])])
    module = ModuleOp([_declaration(external, 2, i32), _run_function(symbol, block)])
    python = PythonRegion(
        external,
        symbol,
        code.loader,
        code.data,
        _specs("input", [argument for argument in region.args]),
        _specs("output", list(_returned(region))),
    )
    native = NativeCode(module, details=code.details)
    return RegionCode(symbol, backend.name, native, python_regions=(python,))


def _pointer_array(block: Block, pointers: Sequence[SSAValue]) -> SSAValue:
    count = llvm.ConstantOp(IntegerAttr(max(len(pointers), 1), i64), i64)
    array = llvm.AllocaOp(count, _POINTER)
    block.add_ops([count, array])
    for index, pointer in enumerate(pointers):
        slot = llvm.GEPOp(array, [index], _POINTER, result_type=_POINTER)
        block.add_ops([slot, llvm.StoreOp(pointer, slot)])
    return array.res


def _counts(region: FuncOp) -> tuple[int, int]:
    return len(region.function_type.inputs), len(region.function_type.outputs)


def _run_block(tensors: int) -> Block:
    return Block(arg_types=[_POINTER] * (2 + tensors))


def _return_status(block: Block, status: int) -> None:
    value = llvm.ConstantOp(IntegerAttr(status, i32), i32)
    block.add_ops([value, llvm.ReturnOp(value.result)])


def _run_function(symbol: str, block: Block) -> llvm.FuncOp:
    type_ = llvm.LLVMFunctionType(list(block.arg_types), i32)
    return llvm.FuncOp(symbol, type_, llvm.LinkageAttr("internal"), body=Region(block))


def _declaration(symbol: str, parameters: int, output: Attribute | None) -> llvm.FuncOp:
    type_ = llvm.LLVMFunctionType([_POINTER] * parameters, output)
    return llvm.FuncOp(symbol, type_, llvm.LinkageAttr("external"))


def _returned(region: FuncOp) -> Sequence[SSAValue]:
    terminator = region.body.block.last_op
    assert terminator is not None
    return terminator.operands


def _specs(kind: str, values: Sequence[SSAValue]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(f"{kind}_{index}", numpy_dtype(type_.element_type), type_.get_shape())
        for index, type_ in enumerate(map(tensor_type, values))
    )


def _compile_c(code: CSource, symbol: str) -> Path:
    """Compiles to a shared object; the same source and flags are compiled once per process."""
    compiler = _c_compiler()
    key = hashlib.sha256(repr((code.source, code.flags, compiler)).encode()).hexdigest()[:24]
    library = _build_directory() / f"{symbol}_{key}.so"
    if library.exists():
        return library
    source = library.with_suffix(".c")
    source.write_text(code.source)
    command = [*compiler, "-shared", "-fPIC", *code.flags, str(source), "-o", str(library)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BackendError(f"the C compiler refused region @{symbol}:\n{result.stderr.strip()}")
    return library


def _c_compiler() -> tuple[str, ...]:
    command = shlex.split(os.environ.get("CC", ""))
    if command:
        return tuple(command)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    raise BackendError(
        "the backend generates C source and there is no C compiler; install one (cc, gcc or"
        " clang) or set CC"
    )


@cache
def _build_directory() -> Path:
    directory = tempfile.TemporaryDirectory(prefix="byoc_mlir_")
    _kept.append(directory)
    return Path(directory.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends
