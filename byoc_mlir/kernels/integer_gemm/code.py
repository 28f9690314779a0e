"""The function of an integer product: a range of its units, each some rows by a panel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    VectorType,
    f32,
    i8,
    i32,
    i64,
)
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder, ModuleBuilder
from byoc_mlir.kernels.gemm import add_products
from byoc_mlir.kernels.integer_gemm.epilogue import Finish, IntegerEpilogue
from byoc_mlir.kernels.integer_gemm.parameters import Parameters
from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit, IntegerVectors
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors

_PREFIX = "byoc_integer_gemm"

Factors: TypeAlias = "Sequence[tuple[SSAValue | None, SSAValue | None]]"
"""The scale and the offset of each vector of a tile's columns."""

_LINE = 16
"""Words of a cache line."""

_ELEMENTS = {"sums": i32, "numbers": f32, "bytes": i8}


@dataclass(frozen=True)
class Variant:
    """What the code depends on."""

    unit: IntegerUnit
    rows: int
    """Those of a tile; the result has at least as many."""
    epilogue: IntegerEpilogue

    @property
    def name(self) -> str:
        """The function's symbol."""
        return f"{_PREFIX}_{self.rows}_{self.unit.name}_{self.epilogue.suffix}"


@dataclass(frozen=True)
class Arguments:
    """The pointers that the function takes; null for what there is not."""

    parameters: SSAValue
    """The words of `Parameters`."""
    left: SSAValue
    right: SSAValue
    """The panels."""
    start: SSAValue
    scale: SSAValue
    offset: SSAValue
    """What sums begin with, their scales and offsets: whole panels of them."""
    residual: SSAValue
    result: SSAValue


POINTERS = 8
"""How many arguments are pointers."""


def define_units(module: ModuleBuilder, variant: Variant) -> str:
    """`void (parameters, left, right, start, scale, offset, residual, result, begin, end)`.

    Computes the units `[begin, end)` of `blocks * panels`. Returns its symbol.
    """
    if module.has(variant.name):
        return variant.name
    types = (*(POINTER,) * POINTERS, i64, i64)
    function = module.function(variant.name, types, result=VOID, internal=True)
    *pointers, begin, end = function.parameters
    arguments = Arguments(*pointers)
    parameters = read(function, arguments.parameters, Parameters[SSAValue])
    units = _Units(function, variant, arguments, parameters)
    function.loop(
        function.subtract(end, begin), lambda index: units.write(function.add(begin, index))
    )
    function.finish()
    return variant.name


@dataclass(frozen=True)
class _Columns:
    """What a unit has of the columns."""

    right: SSAValue
    start: SSAValue
    scale: SSAValue
    offset: SSAValue
    """Where those of its panel begin."""
    first: SSAValue
    left_over: SSAValue
    """How many there are from the panel's first on."""
    size: SSAValue
    """The words of a panel."""


@dataclass(frozen=True)
class _Units:
    """Writes the loops of a thread."""

    function: FunctionBuilder
    variant: Variant
    arguments: Arguments
    parameters: Parameters[SSAValue]

    @property
    def _vectors(self) -> IntegerVectors:
        return IntegerVectors(self.function, self.variant.unit)

    @property
    def _offsets(self) -> range:
        """Where the vectors of a panel begin."""
        return range(0, self.variant.unit.panel, self.variant.unit.lanes)

    def write(self, number: SSAValue) -> None:
        """Writes the code of one unit: the tiles of a block of rows, by one panel."""
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
            self._tile(function.least(row, final), columns)  # the last may repeat some rows

        function.loop(function.subtract(last, first), tile)

    def _columns(self, panel: SSAValue) -> _Columns:
        function, parameters = self.function, self.parameters
        first = function.multiply(panel, self.variant.unit.panel)
        depth = function.multiply(
            function.multiply(parameters.window_height, parameters.window_width), parameters.words
        )
        start, scale, added = (
            self._words(pointer, first)
            for pointer in (self.arguments.start, self.arguments.scale, self.arguments.offset)
        )
        right = self._words(self.arguments.right, function.multiply(first, depth))
        left_over = function.subtract(parameters.outputs, first)
        size = function.multiply(depth, self.variant.unit.panel)
        return _Columns(right, start, scale, added, first, left_over, size)

    def _words(self, pointer: SSAValue, index: SSAValue | int) -> SSAValue:
        """The address of a word of 32 bits."""
        return self.function.gep(pointer, index, i32)

    def _tile(self, row: SSAValue, columns: _Columns) -> None:
        function, parameters = self.function, self.parameters
        starts = self._vectors.row(columns.start, self.variant.unit.panel)
        sums: Sequence[SSAValue] = starts * self.variant.rows
        lefts = self._lefts(row)
        window_words = function.multiply(parameters.window_width, parameters.words)

        def line(y: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
            def pixel(x: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
                place = function.add(
                    function.multiply(y, parameters.window_line),
                    function.multiply(x, parameters.window_pixel),
                )
                depth = function.add(
                    function.multiply(y, window_words), function.multiply(x, parameters.words)
                )
                sources = [self._words(left, place) for left in lefts]
                right = self._words(
                    columns.right, function.multiply(depth, self.variant.unit.panel)
                )
                step = partial(self._word, sources, right, columns.size)
                return function.fold(parameters.words, sums, step)

            return function.fold(parameters.window_width, sums, pixel)

        self._store(function.fold(parameters.window_height, sums, line), row, columns)

    def _lefts(self, row: SSAValue) -> list[SSAValue]:
        """Where the windows of the tile's rows begin."""
        function, parameters = self.function, self.parameters
        line, x = function.divmod(row, parameters.width)
        image, y = function.divmod(line, parameters.height)
        place = function.add(
            function.multiply(image, parameters.image),
            function.add(
                function.multiply(y, parameters.line), function.multiply(x, parameters.pixel)
            ),
        )
        next_line = function.subtract(
            parameters.line, function.multiply(parameters.width, parameters.pixel)
        )
        next_image = function.subtract(
            parameters.image, function.multiply(parameters.height, parameters.line)
        )
        lefts = [self._words(self.arguments.left, place)]
        for _ in range(1, self.variant.rows):
            place = function.add(place, parameters.pixel)
            x, y, place = self._carried(function.add(x, 1), parameters.width, y, place, next_line)
            y, _, place = self._carried(y, parameters.height, y, place, next_image)
            lefts.append(self._words(self.arguments.left, place))
        return lefts

    def _carried(
        self,
        low: SSAValue,
        limit: SSAValue,
        high: SSAValue,
        place: SSAValue,
        distance: SSAValue,
    ) -> tuple[SSAValue, SSAValue, SSAValue]:
        """A number of two digits whose lower one has become its limit at most, and the place that
        it stands for; the distance is from the last one of a higher digit to the next one's first.
        """
        function = self.function
        is_full = function.compare("eq", low, limit)
        return (
            function.select(is_full, function.integer(0), low),
            function.select(is_full, function.add(high, 1), high),
            function.select(is_full, function.add(place, distance), place),
        )

    def _word(
        self,
        sources: Sequence[SSAValue],
        right: SSAValue,
        next_panel: SSAValue,
        index: SSAValue,
        sums: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        """Adds the products of a word of each row, and prefetches that of the next panel."""
        vectors, panel = self._vectors, self.variant.unit.panel
        place = self._words(right, self.function.multiply(index, panel))
        following = self._words(place, next_panel)
        for at in range(0, panel, _LINE):
            self.function.prefetch(self._words(following, at))
        words = (vectors.repeated(self._words(source, index)) for source in sources)
        return add_products(vectors.multiply_add, words, vectors.row(place, panel), sums)

    def _store(self, sums: Sequence[SSAValue], row: SSAValue, columns: _Columns) -> None:
        function, parameters, epilogue = self.function, self.parameters, self.variant.epilogue
        place = function.add(function.multiply(row, parameters.outputs), columns.first)
        factors = self._factors(columns)

        def rows(masks: Sequence[SSAValue] | None) -> Iterator[tuple[int, Sequence[SSAValue]]]:
            for number in range(self.variant.rows):
                residuals: Sequence[SSAValue | None] = [None] * len(self._offsets)
                if epilogue.residual is not None:
                    residuals = self._residuals(
                        self._addresses(place, number, residual=True), masks
                    )
                yield number, self._finished_row(sums, number, factors, residuals)

        def whole() -> None:
            for number, values in rows(None):
                for address, value in zip(self._addresses(place, number), values, strict=True):
                    function.store(value, address, epilogue.element_bytes)

        def part() -> None:
            limit = function.insert(llvm.TruncOp(columns.left_over, i32))
            masks = [self._vectors.is_below(at, limit) for at in self._offsets]
            for number, values in rows(masks):
                places = self._addresses(place, number)
                for address, value, mask in zip(places, values, masks, strict=True):
                    self._store_some(value, address, mask)

        panel = function.integer(self.variant.unit.panel)
        function.when(function.compare("sge", columns.left_over, panel), whole)
        function.when(function.compare("slt", columns.left_over, panel), part)

    def _addresses(
        self, place: SSAValue, number: int, *, residual: bool = False
    ) -> Iterator[SSAValue]:
        """Those of the vectors of a tile's row, of the result or of the residual."""
        function, element = self.function, _ELEMENTS[self.variant.epilogue.kind]
        base = self.arguments.residual if residual else self.arguments.result
        for at in self._offsets:
            index = function.add(function.multiply(self.parameters.outputs, number), at)
            target = function.gep(base, place, element)
            yield function.gep(target, index, element)

    def _residuals(
        self, addresses: Iterator[SSAValue], masks: Sequence[SSAValue] | None
    ) -> list[SSAValue]:
        """The bytes that are added to a row, in the lanes that masks name."""
        lanes = self.variant.unit.lanes
        type_ = VectorType(i8, [lanes])
        if masks is None:
            return [self.function.load(address, type_, 1) for address in addresses]
        nothing = self.function.constant(
            DenseIntOrFPElementsAttr.from_list(type_, [0] * lanes), type_
        )
        alignment = self.function.integer(1, i32)
        return [
            self.function.insert(
                llvm.CallIntrinsicOp(
                    f"llvm.masked.load.v{lanes}i8.p0", [address, alignment, mask, nothing], [type_]
                )
            )
            for address, mask in zip(addresses, masks, strict=True)
        ]

    def _store_some(self, value: SSAValue, address: SSAValue, mask: SSAValue) -> None:
        """Writes the lanes that a mask names."""
        epilogue, lanes = self.variant.epilogue, self.variant.unit.lanes
        type_ = f"v{lanes}{_ELEMENTS[epilogue.kind]}"
        alignment = self.function.integer(epilogue.element_bytes, i32)
        self.function.append(
            llvm.CallIntrinsicOp(
                f"llvm.masked.store.{type_}.p0", [value, address, alignment, mask], []
            )
        )

    def _factors(self, columns: _Columns) -> Factors:
        """The scale and the offset of each vector of columns, where there are such."""
        unit, epilogue = self.variant.unit, self.variant.epilogue
        vectors = Vectors(self.function, unit.lanes)
        return [
            (
                None if epilogue.kind == "sums" else vectors.load(self._words(columns.scale, at)),
                vectors.load(self._words(columns.offset, at)) if epilogue.offset else None,
            )
            for at in self._offsets
        ]

    def _finished_row(
        self,
        sums: Sequence[SSAValue],
        number: int,
        factors: Factors,
        residuals: Sequence[SSAValue | None],
    ) -> list[SSAValue]:
        unit, epilogue = self.variant.unit, self.variant.epilogue
        finish = Finish(self.function, unit.lanes, epilogue, self.parameters.bytes)
        width = len(factors)
        row = sums[number * width : (number + 1) * width]
        return [
            finish.of(total, *factor, residual)
            for factor, total, residual in zip(factors, row, residuals, strict=True)
        ]
