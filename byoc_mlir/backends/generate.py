"""Conversion of the three kinds of generated code to native functions and the symbols that they
call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import HOOKS, HOST_SPACE, region_function, weight_symbol
from byoc_mlir.backends.base import (
    Backend,
    Blob,
    CodegenContext,
    CSource,
    NativeCode,
    OpDetail,
)
from byoc_mlir.backends.c_compiler import compile_c
from byoc_mlir.backends.region import outputs_of
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.errors import BackendError
from byoc_mlir.ir_dump import apply_pass, dump_text
from byoc_mlir.kernels.builder import POINTER
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.runtime.program import LibrarySymbol, PythonRegion
from byoc_mlir.tensors import TensorInfo


@dataclass(frozen=True)
class RegionCode:
    """Native code of a region, and the functions outside of the object code that it calls."""

    symbol: str
    backend: str
    native: NativeCode
    space: str = HOST_SPACE
    """Memory space of the region's tensors."""
    library_symbols: tuple[LibrarySymbol, ...] = ()
    python_regions: tuple[PythonRegion, ...] = ()
    source: str = ""
    """Text that the backend generated, or ""."""

    @property
    def function(self) -> str:
        """Returns the symbol of the function that runs the region, or starts it."""
        return region_function(self.symbol, self.space)

    @property
    def hooks(self) -> tuple[str, ...]:
        """Returns the hooks that the code defines, out of `load`, `open`, `close` and `unload`."""
        defined = {op.sym_name.data for op in self.native.module.ops if isinstance(op, llvm.FuncOp)}
        return tuple(hook.name for hook in HOOKS if hook.hook(self.symbol) in defined)

    @property
    def bound_symbols(self) -> frozenset[str]:
        """Returns the external functions that the runtime binds one by one, without a search in
        libraries.
        """
        return frozenset(item.symbol for item in (*self.library_symbols, *self.python_regions))

    @property
    def details(self) -> Sequence[OpDetail]:
        """Returns the backend's report on its primitives."""
        return self.native.details


def generate_all(
    backend: Backend, regions: Sequence[FuncOp], context: CodegenContext, ctx: Context
) -> list[RegionCode | Exception]:
    """Generates the code of all regions of a backend; an exception stands for a region that failed.

    Args:
        backend: the backend of all the regions.
        regions: outlined regions, which stay unchanged.
        context: settings for the code generator.
        ctx: xDSL context for the backend's passes.
    """
    if not regions:
        return []
    try:
        prepared = prepare_regions(backend, regions, ctx)
        answers = backend.codegen_regions(prepared, context)
        if len(answers) != len(regions):
            raise BackendError(
                f"backend '{backend.name}' answered {len(answers)} times for {len(regions)} regions"
            )
    except Exception as error:  # any exception of a backend is a refusal
        if len(regions) == 1:
            return [error]
        return [generate_all(backend, [region], context, ctx)[0] for region in regions]
    return [
        _native(backend, region, answer) for region, answer in zip(prepared, answers, strict=True)
    ]


def prepare_regions(
    backend: Backend, regions: Sequence[FuncOp], context: Context
) -> Sequence[FuncOp]:
    """Runs the backend's region passes on copies of the regions; the originals stay unchanged.

    Raises:
        BackendError: a pass changed a function's name or type.
    """
    passes = backend.region_passes()
    if not passes:
        return regions
    module = ModuleOp([region.clone() for region in regions])
    for pass_ in passes:
        apply_pass(pass_, context, module)
        module.verify()
    found = {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}
    for region in regions:
        after = found.get(region.sym_name.data)
        if after is None or after.function_type != region.function_type:
            raise BackendError(
                f"the region passes of backend '{backend.name}' changed the name or the type of"
                f" @{region.sym_name.data}"
            )
    return [found[region.sym_name.data] for region in regions]


def _native(backend: Backend, region: FuncOp, answer: object) -> RegionCode | Exception:
    if isinstance(answer, Exception):
        return answer
    try:
        return _brought_to_native(backend, region, answer)
    except BackendError as error:
        return error


def _brought_to_native(backend: Backend, region: FuncOp, code: object) -> RegionCode:
    symbol = region.sym_name.data
    if isinstance(code, NativeCode):
        return _checked(RegionCode(symbol, backend.name, code, backend.memory_space))
    if isinstance(code, CSource):
        return _from_c(backend, region, code)
    if isinstance(code, Blob) and backend.memory_space != HOST_SPACE:
        raise BackendError(
            f"backend '{backend.name}' returned a Blob for region @{symbol} on device"
            f" '{backend.memory_space}'; expected NativeCode or CSource"
        )
    if isinstance(code, Blob):
        return _from_blob(backend, region, code)
    raise BackendError(
        f"backend '{backend.name}' returned a {type(code).__name__} for region @{symbol};"
        " expected NativeCode, CSource or Blob"
    )


def _checked(code: RegionCode) -> RegionCode:
    symbols = [op.sym_name.data for op in code.native.module.ops if isinstance(op, llvm.FuncOp)]
    if code.function not in symbols:
        raise BackendError(
            f"backend '{code.backend}' generated no function @{code.function} for region"
            f" @{code.symbol}; found {', '.join(symbols) or 'none'}"
        )
    for top in code.native.module.ops:
        _check_dialect(code, top)
    return code


def _check_dialect(code: RegionCode, top: Operation) -> None:
    """Refuses ops that LLVM IR has no instructions for, while the region can still go elsewhere.

    Raises:
        BackendError: an op is of another dialect than `llvm`.
    """
    for op in top.walk():
        if not op.name.startswith("llvm."):
            where = f"@{top.sym_name.data}" if isinstance(top, llvm.FuncOp) else "its module"
            raise BackendError(
                f"backend '{code.backend}' generated {op.name} in {where}, accepted are ops of the"
                " llvm dialect"
            )


def _from_c(backend: Backend, region: FuncOp, code: CSource) -> RegionCode:
    symbol = region.sym_name.data
    weights = code.constants
    if weights is None:
        weights = tuple(op.weight for op in region.walk() if isinstance(op, ConstantOp))
    dump_text(f"{symbol}.generated", lambda: code.source)  # also of what no compiler accepts
    external = LibrarySymbol(f"{symbol}_c", compile_c(code, symbol), symbol)
    count, space = sum(_counts(region)), backend.memory_space
    is_on_host = space == HOST_SPACE
    given = count if is_on_host else 1 + len(weights) + count  # the queue, and the constants
    module = ModuleBuilder()
    name, parameters = region_function(symbol, space), (POINTER,) * (2 + given)
    function = module.function(name, parameters, internal=True)
    symbols = [weight_symbol(weight.digest) for weight in weights] if is_on_host else []
    constants = [function.address(module.external(one)) for one in symbols]
    function.finish(function.call(external.symbol, *constants, *function.parameters[2:]))
    native = NativeCode(
        module.module, constants=weights, details=code.details, libraries=code.libraries
    )
    return RegionCode(symbol, backend.name, native, space, (external,), source=code.source)


def _from_blob(backend: Backend, region: FuncOp, code: Blob) -> RegionCode:
    """Generates `@R`, which puts its pointers into two arrays on the stack and calls the Python
    function.
    """
    symbol = region.sym_name.data
    external = f"{symbol}_python"
    inputs, outputs = _counts(region)
    module = ModuleBuilder()
    function = module.function(symbol, (POINTER,) * (2 + inputs + outputs), internal=True)
    data = function.parameters[2:]
    arrays = (function.stack_array(data[:inputs]), function.stack_array(data[inputs:]))
    function.finish(function.call(external, *arrays))
    python = PythonRegion(
        external,
        symbol,
        code.loader,
        code.data,
        _specs("input", region.args),
        _specs("output", outputs_of(region)),
    )
    native = NativeCode(module.module, details=code.details)
    return RegionCode(symbol, backend.name, native, python_regions=(python,), source=code.source)


def _counts(region: FuncOp) -> tuple[int, int]:
    return len(region.function_type.inputs), len(region.function_type.outputs)


def _specs(kind: str, values: Sequence[SSAValue]) -> tuple[TensorInfo, ...]:
    return tuple(
        TensorInfo(f"{kind}_{index}", numpy_dtype(type_.element_type), type_.get_shape())
        for index, type_ in enumerate(map(tensor_type, values))
    )
