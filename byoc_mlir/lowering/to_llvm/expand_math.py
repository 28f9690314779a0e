"""The pass `expand-math`."""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, ModuleOp, f32
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from byoc_mlir.kernels.f32_code import F32Code
from byoc_mlir.kernels.f32_functions import AT_MOST_ZERO, FUNCTIONS, exp_at_most_one
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.symbols import ops_to_lower


class ExpandMath(ModulePass):
    """Expands exp, log, tanh, erf and similar functions on f32 scalars to arith ops.

    LLVM vectorises these ops. f16 and bf16 are computed in f32. f64, vectors, and functions without
    an expansion become calls of the C library. `f32_functions` documents the errors, 1 to 6 ulp. An
    exp marked `at_most_zero` takes fewer steps.

    ```mlir
    %1 = math.exp %0 : f16
    ```
    becomes
    ```mlir
    %2 = arith.extf %0 : f16 to f32
    ... arith.mulf, arith.addf, arith.bitcast ...
    %1 = arith.truncf %3 : f32 to f16
    ```
    """

    name = "expand-math"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in in_time(ops_to_lower(op)):
            if type(inner) in FUNCTIONS:
                _expand(inner)


def _expand(op: Operation) -> None:
    (operand,) = op.operands
    (result,) = op.results
    code = F32Code(Builder(InsertPoint.before(op)), op.location)
    function = exp_at_most_one if AT_MOST_ZERO in op.attributes else FUNCTIONS[type(op)]
    match result.type:
        case Float32Type():
            value = function(code, operand)
        case Float16Type() | BFloat16Type():
            wide = code.emit(arith.ExtFOp(operand, f32))
            value = function(code, wide)
            value = code.emit(arith.TruncFOp(value, result.type))
        case _:
            return
    value.name_hint = result.name_hint
    result.replace_all_uses_with(value)
    op.detach()
    op.erase()
