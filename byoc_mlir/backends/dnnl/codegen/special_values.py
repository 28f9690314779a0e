"""Built-in code that looks for NaN and infinities."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects import llvm
from xdsl.dialects.builtin import IntegerType, bf16, f32, i1, i16, i32, i64
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.backends.dnnl.codegen.own_arguments import read_addresses
from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder

_PREFIX = "byoc_dnnl"
_EXPONENTS: Mapping[Attribute, tuple[IntegerType, int]] = {
    f32: (i32, 0x7F800000),
    bf16: (i16, 0x7F80),
}
"""Exponent bits of a float, as an integer; NaN and infinities have all of them set."""


def add_any_special(module: ModuleBuilder, element: Attribute) -> str:
    """Adds `i32 (data, count)`, which returns a nonzero value if a float is NaN or an infinity."""
    name = f"{_PREFIX}_any_special_{element}"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, i64), internal=True)
    data, count = function.parameters
    type_, bits_of_exponent = _EXPONENTS[element]
    exponent = function.integer(bits_of_exponent, type_)

    def look(index: SSAValue, found: Sequence[SSAValue]) -> Sequence[SSAValue]:
        bits = function.load(function.gep(data, index, element), type_)
        is_special = function.compare("eq", function.binary(llvm.AndOp, bits, exponent), exponent)
        return [function.binary(llvm.OrOp, found[0], function.insert(llvm.ZExtOp(is_special, i32)))]

    (found,) = function.fold(count, [function.integer(0, i32)], look)
    function.finish(found)
    return name


def add_spread_nan(module: ModuleBuilder, element: Attribute) -> str:
    """Adds `i32 (arguments, table)`, which fills each softmax vector that contains a NaN with
    NaNs.

    The argument is the softmax's result. The table holds the number of outer positions, the axis's
    length without and with padding, the number of inner positions, and the block size of the axis.
    """
    name = f"{_PREFIX}_spread_nan_{element}"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, POINTER), internal=True)
    arguments, table = function.parameters
    data = function.stack_slot()
    read_addresses(function, arguments, data, (0,))
    result = function.pointer(data, 0)
    outside, length, padded, inside, block = (function.word(table, word) for word in range(5))
    row = function.multiply(inside, block)

    def spread(outer: SSAValue, inner: SSAValue) -> None:
        group = function.multiply(outer, function.multiply(padded, inside))
        first = function.add(group, function.multiply(inner, block))

        def address(index: SSAValue) -> SSAValue:
            rows, rest = function.divmod(index, block)
            place = function.add(function.multiply(rows, row), rest)
            return function.gep(result, function.add(first, place), element)

        def add(index: SSAValue, total: Sequence[SSAValue]) -> Sequence[SSAValue]:
            number = function.load_number(address(index), element)
            return [function.insert(llvm.FAddOp(total[0], number))]

        def overwrite(index: SSAValue) -> None:
            function.store_number(total, address(index), element)

        (total,) = function.fold(length, [function.real(0.0)], add)
        is_nan = function.insert(llvm.FCmpOp(total, total, "uno"))
        function.when(is_nan, lambda: function.loop(length, overwrite))

    def group(outer: SSAValue) -> None:
        function.loop(inside, lambda inner: spread(outer, inner))

    function.loop(outside, group)
    function.finish(function.integer(0, i32))
    return name


WINDOW_AXES = 3
_SIZE, _PLACES, _EXTENT, _STRIDE, _DILATION, _BEGIN = range(6)
"""Words of the table for each axis: elements, windows, then the geometry of the windows."""


def add_max_of_windows(module: ModuleBuilder, element: Attribute) -> str:
    """Adds `i32 (arguments, table)`, which computes the maximum of each window, or NaN if it
    contains one.

    The arguments are the source and the result. The table holds the number of images, the number of
    inner elements of each position, then six words for each axis of a window. Results of windows
    that contain only padding stay unchanged.
    """
    name = f"{_PREFIX}_max_of_windows_{element}"
    if module.has(name):
        return name
    function = module.function(name, (POINTER, POINTER), internal=True)
    arguments, table = function.parameters
    data = function.stack_slots(2)
    read_addresses(function, arguments, data, (0, 1))
    source, result = function.pointer(data, 0), function.pointer(data, 1)
    images, inner = function.word(table, 0), function.word(table, 1)
    axes = [[function.word(table, 2 + 6 * n + i) for i in range(6)] for n in range(WINDOW_AXES)]

    def window(image: SSAValue, places: Sequence[SSAValue], lane: SSAValue) -> None:
        def number(index: SSAValue) -> SSAValue:
            return function.load_number(function.gep(source, index, element), element)

        best, is_seen = _max_of_window(function, number, image, axes, places, inner, lane)
        for axis, place in zip(axes, places, strict=True):
            image = function.add(function.multiply(image, axis[_PLACES]), place)
        index = function.add(function.multiply(image, inner), lane)
        slot = function.gep(result, index, element)
        function.when(is_seen, lambda: function.store_number(best, slot, element))

    def along(image: SSAValue, places: Sequence[SSAValue]) -> None:
        if len(places) == WINDOW_AXES:
            function.loop(inner, lambda lane: window(image, places, lane))
            return
        count = axes[len(places)][_PLACES]
        function.loop(count, lambda place: along(image, (*places, place)))

    function.loop(images, lambda image: along(image, ()))
    function.finish(function.integer(0, i32))
    return name


def _max_of_window(
    function: FunctionBuilder,
    number: Callable[[SSAValue], SSAValue],
    image: SSAValue,
    axes: Sequence[Sequence[SSAValue]],
    places: Sequence[SSAValue],
    inner: SSAValue,
    lane: SSAValue,
) -> Sequence[SSAValue]:
    """Computes the maximum of one window, and a flag that is set if the window contains
    elements.

    Args:
        number: function that loads an element.
    """

    def element(
        offset: SSAValue, is_inside: SSAValue, found: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        index = function.add(function.multiply(offset, inner), lane)
        index = function.select(is_inside, index, function.integer(0))
        value = number(index)
        best, is_seen = found
        is_number = function.insert(llvm.FCmpOp(best, best, "ord"))
        is_better = function.insert(llvm.FCmpOp(value, best, "ugt"))  # so is NaN
        taken = function.binary(llvm.AndOp, is_inside, is_number)
        taken = function.binary(llvm.AndOp, taken, is_better)
        is_seen = function.binary(llvm.OrOp, is_seen, is_inside)
        return function.select(taken, value, best), is_seen

    def along(
        depth: int, offset: SSAValue, is_inside: SSAValue, found: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        if depth == len(axes):
            return element(offset, is_inside, found)
        axis = axes[depth]
        first = function.multiply(places[depth], axis[_STRIDE])
        first = function.subtract(first, axis[_BEGIN])

        def step(index: SSAValue, found: Sequence[SSAValue]) -> Sequence[SSAValue]:
            place = function.add(first, function.multiply(index, axis[_DILATION]))
            is_there = function.compare("ult", place, axis[_SIZE])
            following = function.add(function.multiply(offset, axis[_SIZE]), place)
            both = function.binary(llvm.AndOp, is_inside, is_there)
            return along(depth + 1, following, both, found)

        return function.fold(axis[_EXTENT], found, step)

    nothing = function.real(-math.inf), function.integer(0, i1)
    return along(0, image, function.integer(1, i1), nothing)
