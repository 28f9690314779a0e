"""The pass `lower-softmaxes`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Block
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.byoc import host_blocks
from byoc_mlir.dialects.relay.base import sizes_of, tensor_type
from byoc_mlir.dialects.relay.reduce import SoftmaxOp
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.softmax import softmax_code
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.kernel_calls import add_call, known_words
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder
from byoc_mlir.lowering.relay_to_linalg.kernel import Kernel
from byoc_mlir.runtime.system.cpu import target_cpu

_FEWEST_VECTORS = 2
"""Minimum length of a row, in vectors; with shorter rows the kernel gains nothing."""


@dataclass(frozen=True)
class LowerSoftmaxes(ModulePass):
    """Rewrites `f32` softmaxes along the last axis to calls of a kernel that works in place.

    Options:
        threads: OpenMP threads of a run; 0 without an OpenMP runtime.

    ```mlir
    %0 = relay.nn.softmax %x : (tensor<3x197x197xf32>) -> tensor<3x197x197xf32>
    // becomes
    %0 = host.kernel "softmax" in_place %x, %numbers : … -> tensor<3x197x197xf32> {
    ^bb0(…):
      llvm.call @byoc_softmax_8_of_buffers(%none, %none, %0, %0, …)
    }
    ```
    """

    name = "lower-softmaxes"

    threads: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lanes = VectorUnit.of(target_cpu().features).lanes
        module = ModuleBuilder(op, has_threads=self.threads > 1)
        with asking_of(op):
            for block in host_blocks(op):
                for softmax in _softmaxes(block, lanes):
                    _lower(softmax, lanes, module)


def _softmaxes(block: Block, lanes: int) -> Iterator[SoftmaxOp]:
    for op in in_time(block.ops):
        if not isinstance(op, SoftmaxOp) or tensor_type(op.data).element_type != f32:
            continue
        sizes = sizes_of(op.data)
        if op.positive_axis == len(sizes) - 1 and hint(sizes[-1]) >= _FEWEST_VECTORS * lanes:
            yield op


def _lower(op: SoftmaxOp, lanes: int, module: ModuleBuilder) -> None:
    *rows, columns = sizes_of(op.data)
    code = softmax_code(math.prod(rows), columns, lanes)
    b = LinalgBuilder(op)
    known = b.constant(known_words(code), "parameters")
    k = Kernel(op, [known], initial=op.data)
    (data,), (words,) = k.outputs, k.inputs
    add_call(k, module, code, words, {Slot.SOURCE: data, Slot.RESULT: data})
    Rewriter.replace_op(op, (), k.finish(b))
