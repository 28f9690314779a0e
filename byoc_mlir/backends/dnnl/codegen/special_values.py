"""Code of our own that looks for NaN and infinities."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.own_arguments import read_addresses
from byoc_mlir.kernels.builder import POINTER, ModuleBuilder

_PREFIX = "byoc_dnnl"
_EXPONENT = 0x7F800000
"""The bits of the exponent of an `f32`: all are set in NaN and infinities."""


def add_any_special(module: ModuleBuilder) -> str:
    """`i32 (data, count)`: not 0 if one of so many numbers is NaN or an infinity."""
    name = f"{_PREFIX}_any_special"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, i64), internal=True)
    data, count = function.parameters
    exponent = function.integer(_EXPONENT, i32)

    def look(index: SSAValue, found: Sequence[SSAValue]) -> Sequence[SSAValue]:
        bits = function.load(function.gep(data, index), i32)
        is_special = function.compare("eq", function.binary(llvm.AndOp, bits, exponent), exponent)
        return [function.binary(llvm.OrOp, found[0], function.insert(llvm.ZExtOp(is_special, i32)))]

    (found,) = function.fold(count, [function.integer(0, i32)], look)
    function.finish(found)
    return name


def add_spread_nan(module: ModuleBuilder) -> str:
    """`i32 (arguments, table)`: where a softmax has a NaN, all along the axis is NaN.

    The argument is its result; the table says how many groups of lines there are, how long a line
    is, and how many lie side by side in a group.
    """
    name = f"{_PREFIX}_spread_nan"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, POINTER), internal=True)
    arguments, table = function.parameters
    data = function.stack_slot()
    read_addresses(function, arguments, data, (0,))
    result = function.pointer(data, 0)
    outside, length, inside = (function.word(table, word) for word in range(3))

    def spread(outer: SSAValue, inner: SSAValue) -> None:
        group = function.multiply(outer, function.multiply(length, inside))
        first = function.gep(result, function.add(group, inner))

        def address(index: SSAValue) -> SSAValue:
            return function.gep(first, function.multiply(index, inside))

        def add(index: SSAValue, total: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return [function.insert(llvm.FAddOp(total[0], function.load(address(index), f32)))]

        (total,) = function.fold(length, [function.real(0.0)], add)
        is_nan = function.insert(llvm.FCmpOp(total, total, "uno"))
        function.when(
            is_nan,
            lambda: function.loop(length, lambda index: function.store(total, address(index))),
        )

    def group(outer: SSAValue) -> None:
        function.loop(inside, lambda inner: spread(outer, inner))

    function.loop(outside, group)
    function.finish(function.integer(0, i32))
    return name
