"""Function of an integer GEMM: computes a range of units, each a block of rows by one panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    VectorType,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.kernels.integer_gemm.epilogue import Finish, IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.panel import OverlappingPanel, Panel, Run
from byoc_mlir.kernels.integer_gemm.parameters import IntegerGemmParameters
from byoc_mlir.kernels.integer_gemm.part import PartialPanel, StridedRows
from byoc_mlir.kernels.integer_gemm.places import Places
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit, IntegerVectors
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors, split

_PREFIX = "byoc_integer_gemm"

Factors: TypeAlias = "Sequence[tuple[SSAValue | None, SSAValue | None]]"
"""Scale and offset of each vector of a tile's columns."""

_LINE_BYTES = 64
"""Bytes of a cache line."""


@dataclass(frozen=True)
class IntegerGemmVariant:
    """Properties that the code depends on."""

    unit: IntegerUnit
    rows: int
    """Rows of a tile; the result has at least as many."""
    epilogue: IntegerEpilogue
    parts: int = 1
    """Number of tiles that together prefetch the next panel; each block has at least as many."""
    is_matrix: bool = False
    """True if windows are single pixels in one row of pixels: a tile's pixels have equal distances.
    """

    @property
    def name(self) -> str:
        """Returns the function's symbol."""
        rows = f"{self.rows}_of_{self.parts}" if self.parts > 1 else f"{self.rows}"
        rows += "_matrix" * self.is_matrix
        return f"{_PREFIX}_{rows}_{self.unit.name}_{self.epilogue.suffix}"


@dataclass(frozen=True)
class GemmArguments:
    """Pointers among the function's arguments; null for absent arrays."""

    parameters: SSAValue
    """Words of `IntegerGemmParameters`."""
    left: SSAValue
    right: SSAValue
    """Panels of operand B; `left` is operand A."""
    start: SSAValue
    scale: SSAValue
    offset: SSAValue
    """Offsets of the columns; `start` are their initial sums, `scale` their scales. Each array has
    whole panels."""
    residual: SSAValue
    result: SSAValue


POINTERS = 8
"""Number of arguments that are pointers."""


def define_units(module: ModuleBuilder, variant: IntegerGemmVariant) -> str:
    """Defines `void (parameters, left, right, start, scale, offset, residual, result, begin, end)`.

    The function computes the units `[begin, end)` of `blocks * panels`. Returns its symbol.
    """
    if module.has(variant.name):
        return variant.name
    types = (*(POINTER,) * POINTERS, i64, i64)
    function = module.function(variant.name, types, result=VOID, internal=True)
    *pointers, begin, end = function.parameters
    arguments = GemmArguments(*pointers)
    parameters = read(function, arguments.parameters, IntegerGemmParameters[SSAValue])
    row_bytes = variant.unit.panel * variant.epilogue.element.size
    aside = function.stack_slots(-(-variant.rows * row_bytes // 8))
    unit = variant.unit
    finish = Finish.told(
        function, unit.lanes, variant.epilogue, parameters.bytes, narrows=unit.narrows
    )
    units = _UnitLoops(function, variant, arguments, parameters, aside, finish)
    function.for_range(begin, end, units.write)
    function.finish()
    return variant.name


@dataclass(frozen=True)
class _Columns:
    """Columns of the panel that a unit computes."""

    left: SSAValue
    """Address of operand A of the unit's group of channels."""
    panel: Panel
    start: SSAValue
    scale: SSAValue
    offset: SSAValue
    """Address of the panel's offsets; `start` and `scale` are the addresses of its initial sums and
    scales."""
    first: SSAValue
    """Index in the result of the panel's first column."""
    left_over: SSAValue
    """Number of the group's columns from the panel's first column on."""
    shift: SSAValue
    """Shift that is added to the widened elements of operand B."""


@dataclass(frozen=True)
class _UnitLoops:
    """Writer of the loops over units that one thread runs."""

    function: FunctionBuilder
    variant: IntegerGemmVariant
    arguments: GemmArguments
    parameters: IntegerGemmParameters[SSAValue]
    aside: SSAValue
    """Buffer for a tile whose panel is not full."""
    finish: Finish

    @property
    def _vectors(self) -> IntegerVectors:
        return IntegerVectors(self.function, self.variant.unit)

    @property
    def _offsets(self) -> range:
        """Returns the first column of each vector of a panel."""
        return range(0, self.variant.unit.panel, self.variant.unit.lanes)

    def write(self, number: SSAValue) -> None:
        """Generates the code of one unit: the tiles of a block of rows, by one panel."""
        function, rows = self.function, self.variant.rows
        block, panel = function.divmod(number, self.parameters.panels)
        tiles = function.divide(
            function.add(self.parameters.rows, rows - 1), function.integer(rows)
        )
        first, last = function.share(tiles, block, self.parameters.blocks)
        final = function.subtract(self.parameters.rows, rows)
        columns = self._columns(panel)

        def tile(index: SSAValue) -> None:
            row = function.multiply(function.add(first, index), rows)
            # the last tile may repeat some rows
            self._tile(function.least(row, final), columns, self._ahead(index, columns))

        function.loop(function.subtract(last, first), tile)

    def _columns(self, panel: SSAValue) -> _Columns:
        function, parameters, unit = self.function, self.parameters, self.variant.unit
        group, number = function.divmod(panel, parameters.group_panels)
        place, begin = (function.multiply(at, unit.panel) for at in (panel, number))
        left = function.multiply(group, parameters.group)
        start, scale, added = (
            self._words(pointer, place)
            for pointer in (self.arguments.start, self.arguments.scale, self.arguments.offset)
        )
        kind = OverlappingPanel if unit.overlaps else Panel
        return _Columns(
            left=self._left_numbers(self.arguments.left, left),
            panel=kind.of(function, unit, parameters, self.arguments.right, panel),
            start=start,
            scale=scale,
            offset=added,
            first=function.add(function.multiply(group, parameters.group_outputs), begin),
            left_over=function.subtract(parameters.group_outputs, begin),
            shift=function.insert(llvm.TruncOp(parameters.shift, i16)),
        )

    def _words(self, pointer: SSAValue, index: SSAValue | int) -> SSAValue:
        """Returns the address of a 32-bit word."""
        return self.function.gep(pointer, index, i32)

    def _left_numbers(self, pointer: SSAValue, index: SSAValue) -> SSAValue:
        """Returns the address of an element of operand A."""
        return self.function.gep(pointer, index, self.variant.unit.left_number)

    def _right_words(self, pointer: SSAValue, index: SSAValue | int) -> SSAValue:
        """Returns the address of a packed group of operand B."""
        return self.function.gep(pointer, index, self.variant.unit.right_word)

    def _ahead(self, tile: SSAValue, columns: _Columns) -> SSAValue:
        """Returns the address of the part of the next panel that a tile prefetches."""
        function, parts = self.function, self.variant.parts
        _, part = function.divmod(tile, function.integer(parts))
        size = function.multiply(columns.panel.words, self.variant.unit.panel)
        before = function.multiply(part, function.divide(size, parts))
        return self._right_words(columns.panel.weights, function.add(size, before))

    def _tile(self, row: SSAValue, columns: _Columns, ahead: SSAValue) -> None:
        starts = self._vectors.row(columns.start, self.variant.unit.panel)
        sums = starts * self.variant.rows
        multiplied = self._matrix if self.variant.is_matrix else self._windows
        self._store(multiplied(row, columns, ahead, sums), row, columns)

    def _matrix(self, row: SSAValue, columns: _Columns, ahead: SSAValue, sums: Sums) -> Sums:
        """Adds the products of a tile of single pixels."""
        places = Places(self.function, self.parameters, self.variant.rows)
        pixels = places.in_line(self.function.multiply(row, self.parameters.pixel))
        sources = [self._left_numbers(columns.left, place) for place in pixels]
        return self._run(sources, self.function.integer(0), columns, ahead, sums)

    def _windows(self, row: SSAValue, columns: _Columns, ahead: SSAValue, sums: Sums) -> Sums:
        """Adds the products of a tile of windows."""
        function, parameters = self.function, self.parameters
        places = Places(function, parameters, self.variant.rows).of(row)
        lefts = [self._left_numbers(columns.left, place) for place in places]

        def line(y: SSAValue, sums: Sums) -> Sums:
            def pixel(x: SSAValue, sums: Sums) -> Sums:
                place = function.add(
                    function.multiply(y, parameters.window_line),
                    function.multiply(x, parameters.window_pixel),
                )
                run = function.add(function.multiply(y, parameters.window_width), x)
                sources = [self._left_numbers(left, place) for left in lefts]
                return self._run(sources, run, columns, ahead, sums)

            return function.fold(parameters.window_width, sums, pixel)

        return function.fold(parameters.window_height, sums, line)

    def _run(
        self,
        sources: Sequence[SSAValue],
        number: SSAValue,
        columns: _Columns,
        ahead: SSAValue,
        sums: Sums,
    ) -> Sums:
        """Adds the products of one run for each row of a tile."""
        run = columns.panel.run(number)
        step = partial(self._word, sources, run, columns)
        prefetch = partial(self._prefetch, ahead, run.first)
        copies = self.variant.unit.copies
        return self.function.fold(run.words, sums, step, copies=copies, before=prefetch)

    def _prefetch(self, ahead: SSAValue, first: SSAValue, index: SSAValue) -> None:
        """Prefetches parts of the next panel, for the groups of one unrolled iteration."""
        function, unit, parts = self.function, self.variant.unit, self.variant.parts
        word = unit.panel * unit.right_word.size
        place = function.multiply(function.add(first, index), word // parts)
        for at in range(0, word * unit.copies // parts, _LINE_BYTES):
            function.prefetch(function.gep(ahead, function.add(place, at), i8))

    def _word(
        self,
        sources: Sequence[SSAValue],
        run: Run,
        columns: _Columns,
        index: SSAValue,
        sums: Sums,
    ) -> Sums:
        """Adds the products of one packed group for each row of a tile."""
        function, vectors, unit = self.function, self._vectors, self.variant.unit
        before = function.multiply(function.add(run.first, index), unit.panel)
        place = self._right_words(columns.panel.weights, before)
        left = columns.panel.left(run, index)
        words = (vectors.repeated(function.offset(source, left)) for source in sources)
        if unit.widens:
            weights = vectors.widened_row(place, unit.panel, columns.shift)
        else:
            weights = vectors.row(place, unit.panel)
        return add_products(vectors.multiply_add, words, weights, sums)

    def _store(self, sums: Sums, row: SSAValue, columns: _Columns) -> None:
        """Stores a tile; if the last panel is not full, through a buffer."""
        function, unit, parameters = self.function, self.variant.unit, self.parameters
        element = self.variant.epilogue.element
        place = function.add(function.multiply(row, parameters.outputs), columns.first)
        result = function.gep(self.arguments.result, place, element)
        panel = function.integer(unit.panel)
        is_whole = function.compare("sge", columns.left_over, panel)
        is_part = function.compare("slt", columns.left_over, panel)
        distance = function.select(is_whole, parameters.outputs, panel)
        target = function.select(is_whole, result, self.aside)
        aside = StridedRows(self.aside, panel)
        part = PartialPanel(function, self.variant.rows, unit.panel, columns.left_over)
        residual: SSAValue | None = None
        if self.variant.epilogue.residual is not None:
            given = function.gep(self.arguments.residual, place, i8)
            residual = function.select(is_whole, given, self.aside)
            read = StridedRows(given, parameters.outputs)
            function.when(is_part, lambda: part.copy(read, aside, i8, 1))
        factors = self._factors(columns)
        rows, together = self.variant.rows, self._together
        for first in range(0, rows, together):
            places = [
                function.multiply(distance, number)
                for number in range(first, min(first + together, rows))
            ]
            added = [
                self._residuals(None if residual is None else function.gep(residual, at, i8))
                for at in places
            ]
            some = sums[first * len(factors) : (first + len(places)) * len(factors)]
            finished = self._finished(some, factors, added)
            for at, values in zip(places, finished, strict=True):
                self._store_row(values, function.gep(target, at, element))
        written = StridedRows(result, parameters.outputs)
        function.when(is_part, lambda: part.copy(aside, written, element, element.size))

    def _residuals(self, address: SSAValue | None) -> list[SSAValue | None]:
        """Loads the residual bytes of a row; `None` for each vector if there is no residual."""
        if address is None:
            return [None] * len(self._offsets)
        type_ = VectorType(i8, [self.variant.unit.lanes])
        return [
            self.function.load(self.function.gep(address, at, i8), type_, 1) for at in self._offsets
        ]

    def _store_row(self, values: Sequence[SSAValue], address: SSAValue) -> None:
        function, element = self.function, self.variant.epilogue.element
        at = 0
        for value in values:
            function.store(value, function.gep(address, at, element), element.size)
            at += _lanes(value)

    def _factors(self, columns: _Columns) -> Factors:
        """Loads scale and offset of each vector of columns; `None` for a factor that the epilogue
        lacks.
        """
        unit, epilogue = self.variant.unit, self.variant.epilogue
        vectors = Vectors(self.function, unit.lanes)
        return [
            (
                None if epilogue.kind == "sums" else vectors.load(self._words(columns.scale, at)),
                vectors.load(self._words(columns.offset, at)) if epilogue.offset else None,
            )
            for at in self._offsets
        ]

    @property
    def _together(self) -> int:
        """Returns the number of rows to which the epilogue is applied at once, so that they are
        narrowed together.
        """
        width, most = len(self._offsets), self.finish.narrowing.most
        return most // width if self.variant.epilogue.kind == "bytes" and most % width == 0 else 1

    def _finished(
        self,
        sums: Sums,
        factors: Factors,
        residuals: Sequence[Sequence[SSAValue | None]],
    ) -> Sequence[Sequence[SSAValue]]:
        """Applies the epilogue to the sums of some rows; returns the vectors to store."""
        vectors = [
            (*factor, added)
            for row in residuals
            for factor, added in zip(factors, row, strict=True)
        ]
        finished = self.finish.of(
            [(total, *others) for total, others in zip(sums, vectors, strict=True)]
        )
        if len(residuals) == 1:
            return [finished]
        (whole,) = finished
        return [[part] for part in split(self.function, whole, len(residuals))]


def _lanes(value: SSAValue) -> int:
    assert isinstance(value.type, VectorType)
    return value.type.element_count()
