"""Runner of MLIR text: compiles it to native code and calls it with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
from helpers.verified import verify_module
from xdsl.dialects import llvm
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassPipeline

from byoc_mlir.dialects import make_context
from byoc_mlir.ir_dump import dumping
from byoc_mlir.lowering.llvm_ir.codegen import emit_object
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM
from byoc_mlir.lowering.to_llvm.lower_scf_to_cf import LowerScfToCf
from byoc_mlir.runtime.linking.native_module import NativeModule

MLIR_TYPES = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.float16): "f16",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(np.bool_): "i1",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.uint8): "ui8",
    np.dtype(np.uint32): "ui32",
}
OPENMP_FUNCTIONS = (
    "GOMP_parallel",
    "omp_get_max_threads",
    "omp_get_num_threads",
    "omp_get_thread_num",
)
"""Functions that parallel loops call."""

_C_TYPES = {
    float: ctypes.c_float,
    int: ctypes.c_int64,
    np.float64: ctypes.c_double,
}


def lowered(text: str, *before: ModulePass) -> ModuleOp:
    """Lowers the text to the llvm dialect, after the given passes."""
    context = make_context()
    module = Parser(context, text).parse_module()
    verify_module(module)
    passes = (*before, LowerScfToCf(), ConvertToLLVM())
    PassPipeline(passes, lambda _, op, __: verify_module(op)).apply(context, module)
    verify_module(module)
    return module


def optimised_assembly(module: ModuleOp, folder: Path) -> str:
    """Returns LLVM assembly after LLVM's optimisations, which it dumps to a folder."""
    with dumping(folder):
        emit_object(module)
    return (folder / "model-optimised.ll").read_text()


class Native:
    """Compiled functions of a module of MLIR text."""

    def __init__(
        self, text: str, *before: ModulePass, symbols: Mapping[str, int] | None = None
    ) -> None:
        module = lowered(text, *before)
        names = [
            op.sym_name.data
            for op in module.body.block.ops
            if isinstance(op, llvm.FuncOp)
            and op.body.blocks
            and op.linkage.linkage.data == "external"
        ]
        self._module = NativeModule([emit_object(module)], names, symbols)

    def call(self, name: str, *args: np.ndarray | float, result: type | None = None) -> object:
        """Calls a function; arrays are passed by pointer, `float` as f32, `int` as i64 or index."""
        types = [
            ctypes.c_void_p if isinstance(arg, np.ndarray) else _C_TYPES[type(arg)] for arg in args
        ]
        values = [arg.ctypes.data if isinstance(arg, np.ndarray) else arg for arg in args]
        prototype = ctypes.CFUNCTYPE(_C_TYPES[result] if result else None, *types)
        return prototype(self._module.address(name))(*values)


def elementwise(
    name: str,
    body: str,
    inputs: Sequence[np.dtype],
    output: np.dtype,
    size: int,
) -> str:
    """Returns a function that stores `body` (which names `%a`, `%b`, ... and defines `%r`) per
    element.
    """
    operands = [chr(ord("a") + number) for number in range(len(inputs))]
    types = [f"memref<{size}x{MLIR_TYPES[dtype]}>" for dtype in (*inputs, output)]
    params = ", ".join(
        f"%{operand}_in: {type_}" for operand, type_ in zip(operands, types, strict=False)
    )
    loads = "\n".join(
        f"    %{operand} = memref.load %{operand}_in[%i] : {type_}"
        for operand, type_ in zip(operands, types, strict=False)
    )
    return f"""
func.func @{name}({params}, %out: {types[-1]}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {size} : index
  scf.for %i = %c0 to %n step %c1 {{
{loads}
    {body}
    memref.store %r, %out[%i] : {types[-1]}
  }}
  func.return
}}
"""


def ulp_error(found: np.ndarray, exact: np.ndarray) -> float:
    """Returns the largest distance between f32 values and exact f64 ones, in units in the last
    place.

    Infinities, NaNs and the signs of zeros must agree.
    """
    with np.errstate(over="ignore"):
        nearest = exact.astype(np.float32)
    is_finite = np.isfinite(nearest)
    np.testing.assert_array_equal(found[~is_finite], nearest[~is_finite])
    is_zero = nearest == 0
    np.testing.assert_array_equal(np.signbit(found[is_zero]), np.signbit(nearest[is_zero]))
    smallest = np.float32(1e-45)
    ulp = np.spacing(np.maximum(np.abs(nearest[is_finite]), smallest)).astype(np.float64)
    return float(np.max(np.abs(found[is_finite] - exact[is_finite]) / ulp))


def assert_same(found: np.ndarray, wanted: np.ndarray, message: str = "") -> None:
    """Asserts that arrays are equal, NaN to NaN; bf16 is compared as f32, since numpy does not know
    its NaN.
    """
    if found.dtype == ml_dtypes.bfloat16:
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_array_equal(found, wanted, err_msg=message)
