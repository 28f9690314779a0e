"""One convolution as an implicit product, on all threads; see `implicit_gemm.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.implicit_gemm_kernels import PREFIX, add_kernel, suffix
from byoc_mlir.backends.dnnl.codegen.implicit_gemm_table import Table, Word
from byoc_mlir.backends.dnnl.codegen.llvm_builder import (
    POINTER,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
)
from byoc_mlir.backends.dnnl.codegen.own_arguments import read_addresses
from byoc_mlir.backends.dnnl.codegen.vectors import divided, element, scaled, share
from byoc_mlir.backends.dnnl.implicit_gemm import Variant
from byoc_mlir.backends.dnnl.own_layouts import LANES, PANEL

_WEIGHTS, _SOURCE, _RESULT, _BIAS, _RESIDUAL, _TABLE, _DATA_SLOTS = range(7)
"""Slots of what the threads are given: addresses of memory, and of the words."""


def add_implicit_gemm(module: ModuleBuilder, variant: Variant, *, bias: bool) -> str:
    """`i32 (arguments, table)`: runs one convolution.

    The arguments are weights, source, result, then bias and residual.
    """
    name = f"{PREFIX}_{suffix(variant)}" + "_bias" * bias
    if module.has(name):
        return name
    units = _add_units(module, variant)
    function = module.function(name, (POINTER,) * 2, internal=True)
    arguments, address = function.parameters
    data, table = function.stack_slots(_DATA_SLOTS), Table(function, address)
    function.store(function.null(), function.slot(data, _RESIDUAL))
    optional = {_BIAS: bias, _RESIDUAL: variant.residual}
    absent = [slot for slot, is_given in optional.items() if not is_given]
    given = (slot for slot in range(_TABLE) if slot not in absent)
    read_addresses(function, arguments, data, given)
    function.store(address, function.slot(data, _TABLE))
    if not bias:
        zeros = _zeros(function, table, function.pointer(data, _WEIGHTS))
        function.store(zeros, function.slot(data, _BIAS))
    total = function.binary(llvm.MulOp, table[Word.BLOCKS], table[Word.PANELS])
    function.parallel_for(units, data, total)
    function.finish(function.integer(0, i32))
    return name


def _zeros(function: FunctionBuilder, table: Table, weights: SSAValue) -> SSAValue:
    """The zeros behind the weights."""
    size = function.binary(llvm.MulOp, table[Word.PANELS], table[Word.PANEL])
    return element(function, weights, size)


def _add_units(module: ModuleBuilder, variant: Variant) -> str:
    """`void (data, begin, end)`: some units, the panels of one block after the other."""
    name = f"{PREFIX}_units_{suffix(variant)}"
    if module.has(name):
        return name
    sizes = (variant.pixels, variant.pixels - 1)
    kernels = [add_kernel(module, replace(variant, pixels=size)) for size in sizes]
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    data, begin, end = function.parameters
    units = _Units(function, data, Table(function, function.pointer(data, _TABLE)))

    def unit(index: SSAValue) -> None:
        units.write(function.binary(llvm.AddOp, begin, index), kernels, sizes)

    function.loop(function.binary(llvm.SubOp, end, begin), unit)
    function.finish()
    return name


@dataclass(frozen=True)
class _Panel:
    """What a unit has of the channels of the result."""

    weights: SSAValue
    bias: SSAValue
    written: SSAValue
    """From the first channel to the panel's, in elements."""
    is_whole: SSAValue
    """Whether there are results for all of the panel."""


@dataclass(frozen=True)
class _Units:
    """Writes the loops of a thread."""

    function: FunctionBuilder
    data: SSAValue
    table: Table

    def _add(self, one: SSAValue, other: SSAValue) -> SSAValue:
        return self.function.binary(llvm.AddOp, one, other)

    def _subtract(self, one: SSAValue, other: SSAValue) -> SSAValue:
        return self.function.binary(llvm.SubOp, one, other)

    def _times(self, one: SSAValue, word: Word) -> SSAValue:
        return self.function.binary(llvm.MulOp, one, self.table[word])

    def write(self, number: SSAValue, kernels: Sequence[str], sizes: Sequence[int]) -> None:
        """Writes the code of one unit: a block of lines by one panel."""
        function, table = self.function, self.table
        block, panel_number = divided(function, number, table[Word.PANELS])
        first, last = share(function, table[Word.LINES], block, table[Word.BLOCKS])
        panel = self._panel(panel_number)

        def line(index: SSAValue, fetched: Sequence[SSAValue]) -> Sequence[SSAValue]:
            state = self._line(self._add(first, index), panel, *fetched)
            for kernel, size, count in zip(kernels, sizes, self._counts(), strict=True):
                state = self._strips(state, panel, kernel, size, count)
            return (state.fetched,)

        function.fold(self._subtract(last, first), (function.integer(0),), line)

    def _panel(self, number: SSAValue) -> _Panel:
        function = self.function
        weights, bias = (function.pointer(self.data, slot) for slot in (_WEIGHTS, _BIAS))
        vectors = scaled(function, number, PANEL // LANES)
        return _Panel(
            element(function, weights, self._times(number, Word.PANEL)),
            element(function, bias, scaled(function, number, PANEL)),
            self._times(vectors, Word.RESULT_GROUP),
            function.compare("slt", scaled(function, vectors, 1, 1), self.table[Word.OUTPUTS]),
        )

    def _counts(self) -> tuple[SSAValue, SSAValue]:
        """How many long and how many short strips a line has."""
        long = self.table[Word.LONG_STRIPS]
        return long, self._subtract(self.table[Word.STRIPS], long)

    def _line(self, number: SSAValue, panel: _Panel, fetched: SSAValue) -> _Place:
        """The first pixel of a line."""
        function, table = self.function, self.table
        image, row = divided(function, number, table[Word.ROWS])
        place = self._add(table[Word.SOURCE_START], self._times(image, Word.SOURCE_IMAGE))
        to = self._add(self._times(image, Word.RESULT_IMAGE), self._times(row, Word.RESULT_LINE))
        return _Place(
            self._subtract(self._times(row, Word.STRIDE_Y), table[Word.TOP]),
            self._subtract(function.integer(0), table[Word.LEFT]),
            self._add(place, self._times(row, Word.SOURCE_LINE)),
            self._add(to, panel.written),
            fetched,
        )

    def _strips(
        self, start: _Place, panel: _Panel, kernel: str, size: int, count: SSAValue
    ) -> _Place:
        """Writes a loop over strips of one length. Returns the place behind them."""
        function, table, data = self.function, self.table, self.data
        source, result, residual = (
            function.pointer(data, slot) for slot in (_SOURCE, _RESULT, _RESIDUAL)
        )
        zeros = _zeros(function, table, function.pointer(data, _WEIGHTS))
        following = element(function, panel.weights, table[Word.PANEL])
        pixels = function.integer(size)
        steps = [
            self._times(pixels, word)
            for word in (Word.STRIDE_X, Word.SOURCE_PIXEL, Word.RESULT_PIXEL)
        ]
        share_of_panel = function.binary(llvm.SDivOp, table[Word.PANEL], function.integer(LANES))
        last = self._subtract(table[Word.PANEL], share_of_panel)

        def strip(_: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            *places, fetched = state
            x, place, to = places
            function.do(
                kernel,
                *(table.address, element(function, source, place), start.y, x),
                *(panel.weights, panel.bias, zeros),
                element(function, following, fetched),
                element(function, result, to),
                panel.is_whole,
                element(function, residual, to),
            )
            further = self._add(fetched, share_of_panel)
            is_left = function.compare("slt", further, last)
            after = [self._add(place, step) for place, step in zip(places, steps, strict=True)]
            return *after, function.select(is_left, further, last)

        state = (start.x, start.place, start.to, start.fetched)
        return _Place(start.y, *function.fold(count, state, strip))


@dataclass(frozen=True)
class _Place:
    """Where the next kernel reads and writes."""

    y: SSAValue
    x: SSAValue
    """Where the window of its first pixel begins in the image."""
    place: SSAValue
    """Elements of the source to that window."""
    to: SSAValue
    """Elements of the result to its first pixel."""
    fetched: SSAValue
    """How much of the next panel was fetched: each of 8 kernels fetches an eighth."""
