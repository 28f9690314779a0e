"""Functions of bytes, looked up in tables of their 256 results, on all threads."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i8, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder, ModuleBuilder
from byoc_mlir.kernels.convolution import Code, Slot

_PREFIX = "byoc_lookup"
_LANES = 64
_VECTOR = VectorType(i8, [_LANES])
_PERMUTE = "llvm.x86.avx512.vpermi2var.qi.512"
"""Looks up bytes in two vectors, by the lower seven bits."""

_WORD = 8
"""Bytes that are read together where there are no such vectors."""


def lookup_code(elements: int, features: Collection[str]) -> Code:
    """Replaces so many bytes of the source by what the table, in the slot of weights, has for them.

    Args:
        elements: how many there are.
        features: the processor's, by the kernel's names; with AVX-512 VBMI, vectors are looked up.
    """
    define = partial(_define_lookup, has_vectors="avx512vbmi" in features)
    return Code(define, (elements,))


def _define_lookup(module: ModuleBuilder, *, has_vectors: bool) -> str:
    """`void (slots)`; the one parameter is how many elements there are."""
    name = f"{_PREFIX}_vectors" if has_vectors else f"{_PREFIX}_bytes"
    if module.has(name):
        return name
    elements = _define_elements(module, f"{name}_elements", has_vectors=has_vectors)
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (slots,) = function.parameters
    count = function.word(function.pointer(slots, Slot.PARAMETERS), 0)
    function.parallel_for(elements, slots, count)
    function.finish()
    return name


def _define_elements(module: ModuleBuilder, name: str, *, has_vectors: bool) -> str:
    """`void (slots, begin, end)`."""
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    source, table, result = (
        function.pointer(slots, slot) for slot in (Slot.SOURCE, Slot.WEIGHTS, Slot.RESULT)
    )
    write = _write_vectors if has_vectors else _write_words
    begin = write(function, source, table, result, begin, end)

    def one(index: SSAValue) -> None:
        place = function.add(begin, index)
        byte = function.load(function.gep(source, place, i8), i8)
        found = function.gep(table, function.insert(llvm.ZExtOp(byte, i64)), i8)
        function.store(function.load(found, i8), function.gep(result, place, i8))

    function.loop(function.subtract(end, begin), one)
    function.finish()
    return name


def _write_words(
    function: FunctionBuilder,
    source: SSAValue,
    table: SSAValue,
    result: SSAValue,
    begin: SSAValue,
    end: SSAValue,
) -> SSAValue:
    """Writes the loop over whole words. Returns the first element that is left over."""
    count, low = function.divide(function.subtract(end, begin), _WORD), function.integer(255)

    def word(index: SSAValue) -> None:
        place = function.add(begin, function.multiply(index, _WORD))
        bytes_ = function.load(function.gep(source, place, i8), i64, 1)
        for number in range(_WORD):
            shifted = function.binary(llvm.LShrOp, bytes_, function.integer(8 * number))
            found = function.gep(table, function.binary(llvm.AndOp, shifted, low), i8)
            to = function.gep(result, function.add(place, number), i8)
            function.store(function.load(found, i8), to)

    function.loop(count, word)
    return function.add(begin, function.multiply(count, _WORD))


def _write_vectors(
    function: FunctionBuilder,
    source: SSAValue,
    table: SSAValue,
    result: SSAValue,
    begin: SSAValue,
    end: SSAValue,
) -> SSAValue:
    """Writes the loop over whole vectors. Returns the first element that is left over."""
    parts = [function.load(function.gep(table, at, i8), _VECTOR, 1) for at in range(0, 256, _LANES)]
    seven = function.constant(DenseIntOrFPElementsAttr.from_list(_VECTOR, [7] * _LANES), _VECTOR)
    count = function.divide(function.subtract(end, begin), _LANES)

    def vector(index: SSAValue) -> None:
        place = function.add(begin, function.multiply(index, _LANES))
        bytes_ = function.load(function.gep(source, place, i8), _VECTOR, 1)
        low, high = (
            function.insert(llvm.CallIntrinsicOp(_PERMUTE, [one, bytes_, other], [_VECTOR]))
            for one, other in (parts[:2], parts[2:])
        )
        is_high = function.binary(llvm.AShrOp, bytes_, seven)  # all bits of a byte, or none
        other = function.binary(llvm.AndOp, function.binary(llvm.XOrOp, low, high), is_high)
        found = function.binary(llvm.XOrOp, low, other)
        function.store(found, function.gep(result, place, i8), 1)

    function.loop(count, vector)
    return function.add(begin, function.multiply(count, _LANES))
