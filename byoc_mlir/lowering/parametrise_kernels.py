"""The pass `parametrise-kernels`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.abi import KERNEL
from byoc_mlir.limits import in_time

_INDEX = IndexType()


class ParametriseKernels(ModulePass):
    """Makes the number of iterations of a kernel's outermost loops an argument of the kernel.

    As a rule that is where the size of a batch is, so that one kernel does for all batches.

    ```mlir
    func.call @relu_0(%x, %y) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
    func.func private @relu_0(%x: memref<4x8xf32>, %y: memref<4x8xf32>) attributes {byoc.kernel} {
      scf.for %i = %c0 to %c32 step %c1 { … }
    }
    // becomes
    func.call @relu_0(%x, %y, %c32) : (memref<4x8xf32>, memref<4x8xf32>, index) -> ()
    func.func private @relu_0(%x: …, %y: …, %end: index) attributes {byoc.kernel} {
      scf.for %i = %c0 to %end step %c1 { … }
    }
    ```
    """

    name = "parametrise-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [inner for inner in op.ops if isinstance(inner, func.FuncOp)]
        ends = {
            function.sym_name.data: _parametrise(function)
            for function in functions
            if KERNEL in function.attributes
        }
        for function in functions:
            if KERNEL not in function.attributes:
                _pass_ends(function, ends)


def _parametrise(kernel: func.FuncOp) -> Sequence[int]:
    """Replaces the ends of the outermost loops by arguments; returns their values."""
    block = kernel.body.block
    ends: list[int] = []
    for loop, position in _outermost_ends(kernel):
        constant = loop.operands[position].owner
        if not isinstance(constant, arith.ConstantOp) or not isinstance(
            constant.value, IntegerAttr
        ):
            continue
        end = block.insert_arg(_INDEX, len(block.args))
        end.name_hint = "end"
        loop.operands[position] = end
        ends.append(constant.value.value.data)
        if not constant.result.first_use:
            block.erase_op(constant)
    if ends:
        kernel.update_function_type()
    return ends


def _outermost_ends(kernel: func.FuncOp) -> Iterator[tuple[scf.ForOp | scf.ParallelOp, int]]:
    """The outermost loops, and which of their operands is the end of the outermost dimension."""
    for op in in_time(kernel.body.block.ops):
        if isinstance(op, scf.ForOp):
            yield op, 1
        elif isinstance(op, scf.ParallelOp):
            yield op, len(op.lowerBound)


def _pass_ends(caller: func.FuncOp, ends: Mapping[str, Sequence[int]]) -> None:
    """Gives the calls of kernels the new arguments."""
    for block in caller.body.blocks:
        for call in in_time(block.ops):
            if not isinstance(call, func.CallOp):
                continue
            values = ends.get(call.callee.root_reference.data)
            if not values:
                continue
            constants = [arith.ConstantOp(IntegerAttr(end, _INDEX), _INDEX) for end in values]
            block.insert_ops_before(constants, call)
            call.operands = [*call.operands, *(constant.result for constant in constants)]
