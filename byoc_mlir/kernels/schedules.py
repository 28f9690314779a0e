"""Schedules of a convolution kernel: other tiles, and code specialised for its parameters."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr

from byoc_mlir.abi import VECTORISED
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.kernels.convolution import ConvolutionKernel, KernelCode
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parallel import PARALLEL_FOR

CONSTANTS = "constants"
"""Schedule whose code has the convolution's parameters as constants."""


@dataclass(frozen=True)
class Scheduled:
    """Kernel with chosen tiles, whose parameters are loaded at run time or compiled in."""

    kernel: ConvolutionKernel
    has_constants: bool = False
    """True if the parameters are constants in the code, which then serves this convolution only.
    LLVM knows all distances and trip counts, but compiles each convolution separately."""

    def code(self, threads: int) -> KernelCode:
        """Returns the code for `threads` threads."""
        code = self.kernel.code(threads)
        return with_constants(code) if self.has_constants else code


def schedules_of(kernel: ConvolutionKernel) -> Mapping[str, Scheduled]:
    """Returns the schedules of a kernel by name, except the default; only measurements show which
    is fastest.
    """
    found = {name: Scheduled(tiled) for name, tiled in kernel.tilings.items()}
    if is_symbolic((*kernel.convolution.source.shape, *kernel.convolution.result.shape)):
        return found
    with_numbers = {
        f"{name},{CONSTANTS}": Scheduled(one.kernel, has_constants=True)
        for name, one in found.items()
    }
    return {CONSTANTS: Scheduled(kernel, has_constants=True), **found, **with_numbers}


def with_constants(code: KernelCode) -> KernelCode:
    """Returns the code with its parameters compiled in as constants.

    Raises:
        UndecidedSizeError: a parameter is symbolic.
    """
    return KernelCode(partial(_define, code, code.numbers), code.words)


def _define(code: KernelCode, numbers: tuple[int, ...], module: ModuleBuilder) -> str:
    """Defines the functions under unique names; LLVM applies all its optimisations to them."""
    own = ModuleBuilder(has_threads=module.has_threads, numbers=numbers)
    symbol = code.define(own)
    suffix = "_of_" + hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]
    if own.has(PARALLEL_FOR):
        module.define_parallel_for()
    functions = [one for one in own.module.ops if isinstance(one, llvm.FuncOp)]
    names = {one.sym_name.data for one in functions if one.body.blocks} - _shared()
    for function in functions:
        _rename(function, {name: name + suffix for name in names})
        function.attributes.pop(VECTORISED, None)
        if not module.has(function.sym_name.data):
            function.detach()
            module.adopt(function)
    return symbol + suffix


@cache
def _shared() -> frozenset[str]:
    """Returns the symbols of parallel loops, which all kernels share."""
    module = ModuleBuilder()
    module.define_parallel_for()
    return frozenset(one.sym_name.data for one in module.module.ops if isinstance(one, llvm.FuncOp))


def _rename(function: llvm.FuncOp, names: Mapping[str, str]) -> None:
    """Renames a function, and its references to other functions, as `names` maps them."""
    old = function.sym_name.data
    function.sym_name = StringAttr(names.get(old, old))
    for op in function.walk():
        for key, value in op.properties.items():
            if isinstance(value, SymbolRefAttr) and value.root_reference.data in names:
                op.properties[key] = SymbolRefAttr(names[value.root_reference.data])
