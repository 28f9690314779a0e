"""Activations of all elements of a buffer, in place, on all threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import llvm, memref, scf
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnknownLoc,
    f32,
    i32,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.rewriter import InsertPoint

from byoc_mlir.backends.dnnl.codegen.own_arguments import read_addresses
from byoc_mlir.kernels.builder import POINTER, ModuleBuilder
from byoc_mlir.lowering.to_llvm.convert_to_llvm import ConvertToLLVM
from byoc_mlir.lowering.to_llvm.f32_code import F32Code
from byoc_mlir.lowering.to_llvm.f32_functions import erf, tanh
from byoc_mlir.lowering.to_llvm.lower_scf_to_cf import LowerScfToCf

_PREFIX = "byoc_dnnl"
_INDEX = IndexType()
_BUFFER = MemRefType(f32, [DYNAMIC_INDEX])

Formula = Callable[[F32Code, SSAValue], SSAValue]


def _swish(code: F32Code, x: SSAValue) -> SSAValue:
    """`x / (1 + e^-x)`, as `h + h tanh(h)` of the half of x."""
    half = code.multiply(x, 0.5)
    return code.add(half, code.multiply(half, tanh(code, half)))


def _gelu_erf(code: F32Code, x: SSAValue) -> SSAValue:
    half = code.multiply(x, 0.5)
    return code.add(half, code.multiply(half, erf(code, code.multiply(x, math.sqrt(0.5)))))


def _gelu_tanh(code: F32Code, x: SSAValue) -> SSAValue:
    half = code.multiply(x, 0.5)
    cubic = code.multiply(code.multiply(x, x), 0.044715 * math.sqrt(2 / math.pi))
    inner = code.multiply(x, code.add(cubic, math.sqrt(2 / math.pi)))
    return code.add(half, code.multiply(half, tanh(code, inner)))


FORMULAS: Mapping[str, Formula] = {
    "swish": _swish,
    "gelu_erf": _gelu_erf,
    "gelu_tanh": _gelu_tanh,
}
"""By the names of oneDNN's algorithms."""


def add_activation(module: ModuleBuilder, algorithm: str) -> str:
    """`i32 (arguments, table)`: applies an activation to the elements of the first argument.

    The table has one word: how many there are.
    """
    name = f"{_PREFIX}_{algorithm}"
    if module.has(name):
        return name
    kernel = module.adopt(_kernel(algorithm).clone())
    function = module.function(name, (POINTER, POINTER), internal=True)
    arguments, table = function.parameters
    data = function.stack_slot()
    read_addresses(function, arguments, data, (0,))
    elements = function.pointer(data, 0)
    function.parallel_for(kernel, elements, function.word(table, 0))
    function.finish(function.integer(0, i32))
    return name


@cache
def _kernel(algorithm: str) -> llvm.FuncOp:
    """`void (buffer, begin, end)`: a loop that LLVM vectorises."""
    block = Block(arg_types=[_BUFFER, _INDEX, _INDEX])
    buffer, begin, end = block.args
    one = ConstantOp(IntegerAttr(1, _INDEX), _INDEX)
    body = Block(arg_types=[_INDEX])
    builder = Builder(InsertPoint.at_end(body))
    element = builder.insert(memref.LoadOp.get(buffer, [body.args[0]])).res
    value = FORMULAS[algorithm](F32Code(builder, UnknownLoc()), element)
    builder.insert(memref.StoreOp.get(value, buffer, [body.args[0]]))
    builder.insert(scf.YieldOp())
    loop = scf.ForOp(begin, end, one.result, [], Region(body))
    block.add_ops([one, loop, ReturnOp()])
    types = FunctionType.from_lists(list(block.arg_types), [])
    name = f"{_PREFIX}_{algorithm}_elements"
    module = ModuleOp([FuncOp(name, types, Region(block), visibility="private")])
    for lowering in (LowerScfToCf(), ConvertToLLVM()):
        lowering.apply(Context(), module)
    function = module.body.block.first_op
    assert isinstance(function, llvm.FuncOp)
    function.detach()
    return function
