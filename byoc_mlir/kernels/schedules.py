"""The schedules of a convolution's kernel: other tiles, and code for its numbers alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr

from byoc_mlir.abi import VECTORISED
from byoc_mlir.dialects.relay.shape import is_symbolic
from byoc_mlir.kernels.convolution import ConvolutionKernel, KernelCode
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parallel import parallel_functions

CONSTANTS = "constants"
"""The schedule whose code has the numbers of its convolution in it."""


@dataclass(frozen=True)
class Scheduled:
    """A kernel with the tiles that it has, and how its code is told its numbers."""

    kernel: ConvolutionKernel
    has_constants: bool = False
    """Whether they are in its code, which serves no other convolution then. LLVM knows all
    distances and how often loops run, and takes as long for each convolution as for a kernel."""

    def code(self, threads: int) -> KernelCode:
        """What computes it on so many threads."""
        code = self.kernel.code(threads)
        return with_constants(code) if self.has_constants else code


def schedules_of(kernel: ConvolutionKernel) -> Mapping[str, Scheduled]:
    """By name, without the usual one: only measuring tells which are faster."""
    found = {name: Scheduled(tiled) for name, tiled in kernel.tilings.items()}
    if is_symbolic((*kernel.convolution.source.shape, *kernel.convolution.result.shape)):
        return found
    with_numbers = {
        f"{name},{CONSTANTS}": Scheduled(one.kernel, has_constants=True)
        for name, one in found.items()
    }
    return {CONSTANTS: Scheduled(kernel, has_constants=True), **found, **with_numbers}


def with_constants(code: KernelCode) -> KernelCode:
    """Code whose functions have its words as constants.

    Raises:
        UndecidedSizeError: some are symbolic.
    """
    return KernelCode(partial(_define, code, code.numbers), code.words)


def _define(code: KernelCode, numbers: tuple[int, ...], module: ModuleBuilder) -> str:
    """Defines the functions under names of their own, for all of LLVM's optimisations."""
    own = ModuleBuilder(has_threads=module.has_threads, numbers=numbers)
    symbol = code.define(own)
    suffix = "_of_" + hashlib.sha256(repr(numbers).encode()).hexdigest()[:16]
    shared = {one.sym_name.data for one in parallel_functions()}
    functions = [one for one in own.module.ops if isinstance(one, llvm.FuncOp)]
    names = {one.sym_name.data for one in functions if one.body.blocks} - shared
    for function in functions:
        _rename(function, {name: name + suffix for name in names})
        function.attributes.pop(VECTORISED, None)
        if not module.has(function.sym_name.data):
            function.detach()
            module.adopt(function)
    return symbol + suffix


def _rename(function: llvm.FuncOp, names: Mapping[str, str]) -> None:
    """Gives functions other names, where one is defined or mentioned."""
    old = function.sym_name.data
    function.sym_name = StringAttr(names.get(old, old))
    for op in function.walk():
        for key, value in op.properties.items():
            if isinstance(value, SymbolRefAttr) and value.root_reference.data in names:
                op.properties[key] = SymbolRefAttr(names[value.root_reference.data])
