"""Lookup of bytes in tables of 256 results, on all threads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i8, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.convolution import KernelCode, Slot
from byoc_mlir.kernels.module_builder import ModuleBuilder

_PREFIX = "byoc_lookup"
_LANES = 64
_VECTOR = VectorType(i8, [_LANES])
_PERMUTE = "llvm.x86.avx512.vpermi2var.qi.512"
"""Intrinsic that looks up bytes in two vectors, by the lower seven bits."""

_WORD = 8
"""Bytes that are loaded together without AVX-512 VBMI."""


def lookup_code(elements: int, features: Collection[str]) -> KernelCode:
    """Returns the kernel that maps each byte of the source through a table of 256 bytes.

    The slot of the weights holds the table.

    Args:
        elements: number of bytes.
        features: the processor's features, by the kernel's names; AVX-512 VBMI enables vectors.
    """
    define = partial(_define_lookup, has_vectors="avx512vbmi" in features)
    return KernelCode(define, (elements,))


def _define_lookup(module: ModuleBuilder, *, has_vectors: bool) -> str:
    """Defines `void (slots)`, whose one parameter is the number of elements; returns its symbol."""
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
    """Defines `void (slots, begin, end)`, which looks up a range of bytes; returns its symbol."""
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    slots, begin, end = function.parameters
    pointers = (function.pointer(slots, slot) for slot in (Slot.SOURCE, Slot.WEIGHTS, Slot.RESULT))
    lookup = _Lookup(function, *pointers)
    if has_vectors:
        begin = lookup.in_steps(_LANES, begin, end, lookup.vector())
    else:
        begin = lookup.in_steps(_WORD, begin, end, lookup.word)
    lookup.in_steps(1, begin, end, lookup.byte)
    function.finish()
    return name


@dataclass(frozen=True)
class _Lookup:
    """Writer of the loops over bytes that one thread runs."""

    function: FunctionBuilder
    source: SSAValue
    table: SSAValue
    result: SSAValue

    def in_steps(
        self, size: int, begin: SSAValue, end: SSAValue, write: Callable[[SSAValue], None]
    ) -> SSAValue:
        """Generates a loop over whole steps of `size` bytes; returns the offset after them.

        `write` generates the code of the step at an offset.
        """
        function = self.function
        count = function.divide(function.subtract(end, begin), size)
        function.loop(
            count, lambda index: write(function.add(begin, function.multiply(index, size)))
        )
        return function.add(begin, function.multiply(count, size))

    def byte(self, place: SSAValue) -> None:
        """Generates the lookup of one byte."""
        function = self.function
        byte = function.load(function.gep(self.source, place, i8), i8)
        self._store(function.insert(llvm.ZExtOp(byte, i64)), place)

    def word(self, place: SSAValue) -> None:
        """Generates the lookup of `_WORD` bytes from one load."""
        function, low = self.function, self.function.integer(255)
        bytes_ = function.load(function.gep(self.source, place, i8), i64, 1)
        for number in range(_WORD):
            shifted = function.binary(llvm.LShrOp, bytes_, function.integer(8 * number))
            byte = function.binary(llvm.AndOp, shifted, low)
            self._store(byte, function.add(place, number))

    def _store(self, byte: SSAValue, place: SSAValue) -> None:
        function = self.function
        found = function.load(function.gep(self.table, byte, i8), i8)
        function.store(found, function.gep(self.result, place, i8))

    def vector(self) -> Callable[[SSAValue], None]:
        """Returns the generator of a vector's lookup; generates the load of the table, before the
        loop.
        """
        function = self.function
        seven = function.constant(
            DenseIntOrFPElementsAttr.from_list(_VECTOR, [7] * _LANES), _VECTOR
        )
        parts = [
            function.load(function.gep(self.table, at, i8), _VECTOR, 1)
            for at in range(0, 256, _LANES)
        ]

        def write(place: SSAValue) -> None:
            bytes_ = function.load(function.gep(self.source, place, i8), _VECTOR, 1)
            low, high = (
                function.insert(llvm.CallIntrinsicOp(_PERMUTE, [one, bytes_, other], [_VECTOR]))
                for one, other in (parts[:2], parts[2:])
            )
            is_high = function.binary(llvm.AShrOp, bytes_, seven)  # all bits of a byte, or none
            other = function.binary(llvm.AndOp, function.binary(llvm.XOrOp, low, high), is_high)
            found = function.binary(llvm.XOrOp, low, other)
            function.store(found, function.gep(self.result, place, i8), 1)

        return write
