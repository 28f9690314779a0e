"""The pass `choose-convolution-algorithms`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from byoc_mlir.abi import COMPILER
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.winograd import Winograd
from byoc_mlir.lowering.convolutions.description import ALGORITHM, convolutions, described
from byoc_mlir.runtime.cpu import Cpu

_PRODUCTS_A_LANE = 3e6
"""Products that a kernel does per millisecond, thread and lane of a vector: one in a cycle."""

_LOOPS = "loops"
_LOOPS_FACTOR = 1.3
"""How much longer loops take than a kernel that does as many products."""

_WORTH_COMPILING = 0.02
"""Milliseconds that Winograd's algorithm must gain, since LLVM takes half a second for its code."""


@dataclass(frozen=True)
class ChooseConvolutionAlgorithms(ModulePass):
    """Chooses the kernel of every convolution of the host that is faster than loops.

    Options:
        threads: those that run it.
        algorithm: the one to take where it is written for a convolution; left out, the fastest.

    ```mlir
    %0 = relay.nn.conv2d %x, %w {strides = [1, 1], …} : …
    // becomes
    %0 = relay.nn.conv2d %x, %w {strides = [1, 1], …, algorithm = "f4x3"} : …
    ```
    """

    name = "choose-convolution-algorithms"

    threads: int = 1
    algorithm: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        unit = VectorUnit.of(Cpu.host().features)
        for function in op.ops:
            if not isinstance(function, func.FuncOp) or COMPILER in function.attributes:
                continue
            for block in function.body.blocks:
                for found in convolutions(tuple(block.ops)):
                    name = self._chosen(described(found), unit)
                    if name is not None:
                        found.attributes[ALGORITHM] = StringAttr(name)

    def _chosen(self, convolution: Convolution, unit: VectorUnit) -> str | None:
        kernels = tuple(convolution_kernels(convolution, unit))
        if self.algorithm:
            return self.algorithm if self.algorithm in {one.name for one in kernels} else None
        threads = max(self.threads, 1)
        times = {one.name: _milliseconds(one, threads) for one in kernels if not _is_heavy(one)}
        times[_LOOPS] = _LOOPS_FACTOR * _direct(convolution, unit) / threads
        fastest = min(times, key=lambda name: times[name])
        return None if fastest == _LOOPS else fastest


def _is_heavy(kernel: ConvolutionKernel) -> bool:
    return isinstance(kernel, Winograd) and kernel.is_heavy


def _direct(convolution: Convolution, unit: VectorUnit) -> float:
    """The milliseconds of all products, on one thread."""
    batch, _, height, width = convolution.result.shape
    products = batch * height * width * convolution.outputs * convolution.depth
    return products / (_PRODUCTS_A_LANE * unit.lanes)


def _milliseconds(kernel: ConvolutionKernel, threads: int) -> float:
    it = kernel.convolution
    computed = kernel.panels * kernel.unit.panel / it.outputs
    direct = _direct(it, kernel.unit) * computed / threads
    compiling = _WORTH_COMPILING if isinstance(kernel, Winograd) else 0.0
    return kernel.milliseconds(direct, threads) + compiling
