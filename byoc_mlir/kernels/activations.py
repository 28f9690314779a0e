"""Activation kernels, applied in place to all elements of a buffer, on all threads."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, i64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import KernelCode, Slot
from byoc_mlir.kernels.f32_code import FloatCode
from byoc_mlir.kernels.f32_functions import erf, tanh
from byoc_mlir.kernels.module_builder import ModuleBuilder

_PREFIX = "byoc_activation"
_CONTRACT = llvm.FastMathAttr([FastMathFlag.ALLOW_CONTRACT])


def _swish(code: FloatCode, x: SSAValue) -> SSAValue:
    """Computes `x / (1 + e^-x)` as `h + h tanh(h)` with `h = x / 2`."""
    half = code.multiply(x, 0.5)
    return code.add(half, code.multiply(half, tanh(code, half)))


def _gelu_erf(code: FloatCode, x: SSAValue) -> SSAValue:
    half = code.multiply(x, 0.5)
    return code.add(half, code.multiply(half, erf(code, code.multiply(x, math.sqrt(0.5)))))


def _gelu_tanh(code: FloatCode, x: SSAValue) -> SSAValue:
    half = code.multiply(x, 0.5)
    cubic = code.multiply(code.multiply(x, x), 0.044715 * math.sqrt(2 / math.pi))
    inner = code.multiply(x, code.add(cubic, math.sqrt(2 / math.pi)))
    return code.add(half, code.multiply(half, tanh(code, inner)))


FORMULAS: Mapping[str, Callable[[FloatCode, SSAValue], SSAValue]] = {
    "swish": _swish,
    "gelu_erf": _gelu_erf,
    "gelu_tanh": _gelu_tanh,
}
"""Formula of each activation, by oneDNN's name of the algorithm."""


def activation_code(
    name: str, elements: int, formula: Formula | None = None, element: Attribute = f32
) -> KernelCode:
    """Returns the kernel that applies an activation in place to `elements` elements of the
    result.

    Args:
        name: the activation's name, a key of `FORMULAS` if `formula` is omitted.
        elements: number of elements.
        formula: function that generates the code for one element, in `f32`.
        element: type of the elements in memory.
    """
    chosen = FORMULAS[name] if formula is None else formula
    symbol = f"{_PREFIX}_{name}" if element == f32 else f"{_PREFIX}_{name}_{element}"
    define = partial(_define_activation, name=symbol, formula=chosen, element=element)
    return KernelCode(define, (elements,))


def _define_activation(
    module: ModuleBuilder, name: str, formula: Formula, element: Attribute
) -> str:
    """Defines `void (slots)`, whose one parameter is the number of elements; returns its symbol."""
    if module.has(name):
        return name
    elements = _define_elements(module, f"{name}_elements", formula, element)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    count = function.word(function.pointer(slots, Slot.PARAMETERS), 0)
    function.parallel_for(elements, function.pointer(slots, Slot.RESULT), count)
    function.finish()
    return name


def _define_elements(module: ModuleBuilder, name: str, formula: Formula, element: Attribute) -> str:
    """Defines `void (buffer, begin, end)`, a scalar loop for LLVM to vectorise.

    Returns its symbol.
    """
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    buffer, begin, end = function.parameters
    first = function.gep(buffer, begin, element)

    def apply(index: SSAValue) -> None:
        place = function.gep(first, index, element)
        value = formula(ScalarCode(function), function.load_number(place, element))
        function.store_number(value, place, element)

    function.loop(function.subtract(end, begin), apply)
    function.finish()
    return name


@dataclass(frozen=True)
class ScalarCode(FloatCode):
    """Writer of formulas on scalars: appends `llvm` ops to a function."""

    function: FunctionBuilder

    def number(self, value: float) -> SSAValue:
        return self.function.real(value)

    def add(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        return self.function.insert(llvm.FAddOp(lhs, self._value(rhs), _CONTRACT))

    def multiply(self, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        return self.function.insert(llvm.FMulOp(lhs, self._value(rhs), _CONTRACT))

    def divide(self, lhs: SSAValue | float, rhs: SSAValue) -> SSAValue:
        return self.function.insert(llvm.FDivOp(self._value(lhs), rhs))

    def select(
        self, condition: SSAValue, then: SSAValue | float, otherwise: SSAValue | float
    ) -> SSAValue:
        return self.function.select(condition, self._value(then), self._value(otherwise))

    def compare(self, predicate: str, lhs: SSAValue, rhs: SSAValue | float) -> SSAValue:
        return self.function.insert(llvm.FCmpOp(lhs, self._value(rhs), predicate))

    def exp(self, x: SSAValue) -> SSAValue:
        """Computes `e^x` with `llvm.exp.f32`, which calls the C library for each element."""
        return self.function.insert(llvm.CallIntrinsicOp("llvm.exp.f32", [x], [f32]))

    def _value(self, value: SSAValue | float) -> SSAValue:
        return value if isinstance(value, SSAValue) else self.number(value)


Formula = Callable[[ScalarCode, SSAValue], SSAValue]
"""Function that generates an activation's result from an element's value."""
