"""Transforms of tiles before and after the matrix products of Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, cast

from xdsl.dialects import llvm
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, f32, i1, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors, VectorUnit
from byoc_mlir.kernels.winograd.algorithm import Algorithm
from byoc_mlir.kernels.winograd.parameters import ImageParameters, WinogradParameters
from byoc_mlir.kernels.winograd.pixels import Element, Pixels


def source_axis(vectors: Vectors, algorithm: Algorithm, d: Sequence[SSAValue]) -> list[SSAValue]:
    """Transforms a row of source pixels to values at the interpolation points."""
    weighted = vectors.weighted_sum
    points: list[SSAValue] = []
    for point in algorithm.points:
        factors = algorithm.polynomial(without=point)
        even, odd = (weighted(*_terms(factors, d[first:])) for first in (2, 1))
        points += [weighted((1, even), (sign * point, odd)) for sign in (1, -1)]
    factors = algorithm.polynomial()
    zero, infinity = (weighted(*_terms(factors, d[first:])) for first in (0, 1))
    return [zero, *points, infinity]


def _terms(factors: Sequence[float], values: Sequence[SSAValue]) -> list[tuple[float, SSAValue]]:
    """Pairs factors with every other value; the pair with the last factor, which is 1, comes
    first.
    """
    return list(zip(factors, values[: 2 * len(factors) : 2], strict=True))[::-1]


def result_axis(vectors: Vectors, algorithm: Algorithm, m: Sequence[SSAValue]) -> list[SSAValue]:
    """Transforms a row of values at the points to result pixels."""
    weighted = vectors.weighted_sum
    pairs = list(zip(m[1:-1:2], m[2:-1:2], strict=True))
    sums, differences = (
        [weighted((1, one), (sign, other)) for one, other in pairs] for sign in (1, -1)
    )
    results: list[SSAValue] = []
    for power in range(algorithm.step):
        terms = [
            (point**power, value)
            for point, value in zip(
                algorithm.points, differences if power % 2 else sums, strict=True
            )
        ]
        ends = {0: [(1.0, m[0])], algorithm.step - 1: [(1.0, m[-1])]}.get(power, [])
        results.append(weighted(*ends, *terms))
    return results


_PREFIX = "byoc_winograd"
_SLOT_BYTES = 8


Bounds = tuple[SSAValue, SSAValue]
"""First pixel along an axis, and the first one after the range."""


@dataclass(frozen=True)
class _Grid:
    """Grid of pixel vectors in memory: base address, and elements between rows and pixels."""

    base: SSAValue
    line: SSAValue
    step: SSAValue
    vector: VectorType[Element]

    def at(self, function: FunctionBuilder, y: SSAValue, x: SSAValue) -> SSAValue:
        """Returns the address of the vector of channels at pixel (y, x)."""
        line = function.multiply(self.line, y)
        place = function.add(line, function.multiply(self.step, x))
        return function.gep(self.base, place, self.vector.element_type)

    @property
    def transposed(self) -> _Grid:
        """Returns the same memory with rows and columns exchanged."""
        return _Grid(self.base, self.step, self.line, self.vector)

    def lines(
        self, function: FunctionBuilder, size: int
    ) -> Callable[[SSAValue], Sequence[SSAValue]]:
        """Returns a function that generates the addresses of the first `size` pixels of a row."""
        element = self.vector.element_type
        steps = [function.multiply(self.step, number) for number in range(size)]

        def line(y: SSAValue) -> Sequence[SSAValue]:
            start = function.gep(self.base, function.multiply(self.line, y), element)
            return [function.gep(start, step, element) for step in steps]

        return line

    def load(self, function: FunctionBuilder, address: SSAValue) -> SSAValue:
        """Loads the vector at an address."""
        return function.load(address, self.vector, _bytes(self.vector.element_type))

    def store(self, function: FunctionBuilder, vector: SSAValue, address: SSAValue) -> None:
        """Stores a vector to an address."""
        function.store(vector, address, _bytes(self.vector.element_type))

    def fill(self, function: FunctionBuilder, count: int, vector: SSAValue) -> None:
        """Stores a vector to the first `count` pixels of a buffer."""
        lanes, element = self.vector.element_count(), self.vector.element_type

        def store(index: SSAValue) -> None:
            place = function.multiply(index, lanes)
            self.store(function, vector, function.gep(self.base, place, element))

        function.loop(function.integer(count), store)

    def or_else(self, function: FunctionBuilder, condition: SSAValue, other: _Grid) -> _Grid:
        """Returns this grid if `condition` holds, otherwise `other`."""
        return _Grid(
            function.select(condition, self.base, other.base),
            function.select(condition, self.line, other.line),
            function.select(condition, self.step, other.step),
            self.vector,
        )


def _bytes(element: Element) -> int:
    return element.bitwidth // 8


@dataclass(frozen=True)
class _Tile:
    """Tile in the generated code of one thread; sizes are in elements and pixels."""

    vectors: Vectors
    image: ImageParameters[SSAValue]
    start: SSAValue
    """Elements from the first image's first pixel to the tile's first pixel."""
    lines: Bounds
    columns: Bounds
    """Range of the tile's columns that are in the image; `lines` is the range of its rows."""
    is_inside: SSAValue
    """True at run time if all pixels of the tile are in the image."""
    matrices: SSAValue
    """Address of the tile's row in the first matrix."""

    @property
    def _function(self) -> FunctionBuilder:
        return self.vectors.function

    def pixels(self, memory: SSAValue, vector: SSAValue, element: Element) -> _Grid:
        """Returns the grid of one channel vector of the tile's pixels in the image."""
        offset = self._function.multiply(vector, self.image.vector)
        base = self._function.gep(memory, self._function.add(self.start, offset), element)
        type_ = VectorType(element, [self.vectors.lanes])
        return _Grid(base, self.image.line, self.image.pixel, type_)

    def points(self, vector: SSAValue, size: int) -> _Grid:
        """Returns the grid of one channel vector of the tile's `size` rows of points."""
        offset = self._function.multiply(vector, self.vectors.lanes)
        line = self._function.multiply(self.image.matrix, size)
        row = self._function.gep(self.matrices, offset)
        return _Grid(row, line, self.image.matrix, self.vectors.type)

    def unless_inside(self, body: Callable[[], None]) -> None:
        """Generates code that runs `body` only if the tile reaches beyond the image."""
        zero = self._function.integer(0, i1)
        self._function.when(self._function.compare("eq", self.is_inside, zero), body)

    def copy(self, source: _Grid, destination: _Grid) -> None:
        """Copies the tile's pixels that are in the image, for a tile that reaches beyond it."""
        function = self._function

        def line(index: SSAValue) -> None:
            y = function.add(self.lines[0], index)

            def pixel(x: SSAValue) -> None:
                value = source.load(function, source.at(function, y, x))
                destination.store(function, value, destination.at(function, y, x))

            function.for_range(*self.columns, pixel)

        lines = function.subtract(self.lines[1], self.lines[0])
        self.unless_inside(lambda: function.loop(lines, line))

    def read(self, memory: SSAValue, vector: SSAValue, buffer: _Grid) -> _Grid:
        """Returns the grid of one channel vector of an image's pixels.

        A tile that reaches beyond the image reads a buffer, to which its pixels are copied first.
        """
        image = self.pixels(memory, vector, buffer.vector.element_type)
        self.copy(image, buffer)
        return image.or_else(self._function, self.is_inside, buffer)

    def read_or_zeros(self, memory: SSAValue, vector: SSAValue, zeros: _Grid) -> _Grid:
        """Returns what `read` does; if the address is null, the buffer, which is zero then."""
        function, image = self._function, self.pixels(memory, vector, zeros.vector.element_type)
        is_given = function.compare("ne", memory, function.null())
        function.when(is_given, lambda: self.copy(image, zeros))
        is_read = function.binary(llvm.AndOp, is_given, self.is_inside)
        return image.or_else(function, is_read, zeros)


def _buffer(vectors: Vectors, lines: int, columns: int, element: Element) -> _Grid:
    """Allocates memory on the stack for one vector of each pixel of a tile."""
    function, lanes = vectors.function, vectors.lanes
    base = function.stack_slots(-(-lines * columns * lanes * _bytes(element) // _SLOT_BYTES))
    line, step = function.integer(columns * lanes), function.integer(lanes)
    return _Grid(base, line, step, VectorType(element, [lanes]))


def define_source_transform(
    module: ModuleBuilder, unit: VectorUnit, algorithm: Algorithm, pixels: Pixels
) -> str:
    """Defines `void (parameters, source, matrices, first, begin, end)`; returns its symbol.

    The function transforms pixels to matrices, for a range of tiles of the block that begins with
    tile `first`. The image is padded with zeros.
    """
    name, size = f"{_PREFIX}_source_{algorithm.name}_{unit.lanes}{pixels.of_source}", algorithm.tile
    if module.has(name):
        return name
    types = (*(POINTER,) * 3, *(i64,) * 3)
    function = module.vectorised(name, types)
    address, source, matrices, *tiles = function.parameters
    parameters, vectors = (
        read(function, address, WinogradParameters[SSAValue]),
        Vectors(function, unit.lanes),
    )
    buffer = _buffer(vectors, size, size, pixels.element)
    between = _buffer(vectors, size, size, f32)
    given, axis = pixels.source(vectors, address), partial(source_axis, vectors, algorithm)

    def row(values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        return axis([*map(given.numbers, values)])

    def write(tile: _Tile) -> None:
        tile.unless_inside(lambda: buffer.fill(function, size**2, given.padding))

        def transform(vector: SSAValue) -> None:
            seen, points = tile.read(source, vector, buffer), tile.points(vector, size)
            sizes = (size, size, size)
            _each_line(function, sizes, row, between, seen)
            _each_line(function, sizes, axis, points.transposed, between.transposed)

        function.loop(tile.image.vectors, transform)

    sizes = (algorithm.step, size)
    _each_tile(vectors, parameters, parameters.source, matrices, tiles, sizes, write)
    function.finish()
    return name


def define_result_transform(
    module: ModuleBuilder, unit: VectorUnit, algorithm: Algorithm, pixels: Pixels
) -> str:
    """Defines `void (parameters, result, matrices, first, begin, end, bias, residual)`.

    The function transforms matrices to pixels. Returns its symbol.
    """
    name, size = f"{_PREFIX}_result_{algorithm.name}_{unit.lanes}{pixels.of_result}", algorithm.step
    if module.has(name):
        return name
    types = (*(POINTER,) * 3, *(i64,) * 3, *(POINTER,) * 2)
    function = module.vectorised(name, types)
    address, result, matrices, *tiles, biases, terms = function.parameters
    parameters, vectors = (
        read(function, address, WinogradParameters[SSAValue]),
        Vectors(function, unit.lanes),
    )
    of_channels = pixels.result(vectors, address, biases)
    buffer, term_buffer = (_buffer(vectors, size, size, pixels.element) for _ in range(2))
    side, axis = algorithm.tile, partial(result_axis, vectors, algorithm)
    between = _buffer(vectors, size, side, f32)
    if pixels.has_residual:
        type_ = cast("VectorType[Any]", term_buffer.vector)
        zeros = DenseIntOrFPElementsAttr.from_list(type_, [0] * unit.lanes)
        term_buffer.fill(function, size**2, function.constant(zeros, type_))

    def write(tile: _Tile) -> None:
        def transform(vector: SSAValue) -> None:
            image = tile.pixels(result, vector, pixels.element)
            written = image.or_else(function, tile.is_inside, buffer)
            finished, points = of_channels(vector), tile.points(vector, side)
            others = [tile.read_or_zeros(terms, vector, term_buffer)] if pixels.has_residual else []

            def finish(values: Sequence[SSAValue], *added: Sequence[SSAValue]) -> list[SSAValue]:
                residuals = added[0] if added else [None] * size
                return [*map(finished, axis(values), residuals)]

            sizes = (side, side, size)
            _each_line(function, sizes, axis, between.transposed, points.transposed)
            _each_line(function, (size, side, size), finish, written, between, *others)
            tile.copy(buffer, image)

        function.loop(tile.image.vectors, transform)

    _each_tile(vectors, parameters, parameters.result, matrices, tiles, (size, size), write)
    function.finish()
    return name


def _each_line(
    function: FunctionBuilder,
    sizes: tuple[int, int, int],
    convert: Callable[..., Sequence[SSAValue]],
    target: _Grid,
    source: _Grid,
    *others: _Grid,
) -> None:
    """Generates a loop that converts the rows of grids to those of another one.

    Args:
        function: builder of the code.
        sizes: number of rows, and the lengths of the rows of `source` and of all other grids.
        convert: function that generates the code for one row of each grid that is read.
        target: grid that is written.
        source, others: grids that are read.
    """
    count, read, written = sizes
    places = target.lines(function, written)
    rows = [(source, source.lines(function, read))]
    rows += [(one, one.lines(function, written)) for one in others]

    def line(y: SSAValue) -> None:
        values = convert(*([grid.load(function, at) for at in row(y)] for grid, row in rows))
        for value, place in zip(values, places(y), strict=True):
            target.store(function, value, place)

    function.loop(function.integer(count), line)


def _each_tile(
    vectors: Vectors,
    parameters: WinogradParameters[SSAValue],
    image: ImageParameters[SSAValue],
    matrices: SSAValue,
    tiles: Sequence[SSAValue],
    sizes: tuple[int, int],
    write: Callable[[_Tile], None],
) -> None:
    """Generates a loop over tiles.

    Args:
        vectors: builder of the code.
        parameters: parameters of the convolution.
        image: parameters of the image that is tiled.
        matrices: first row of the block's matrices.
        tiles: first tile of the block; begin and end of the range within the block.
        sizes: distance between tiles, and size of a tile, in pixels.
        write: function that generates the code for one tile.
    """
    function, (first, begin, end), (step, size) = vectors.function, tiles, sizes
    whole = function.integer(size)

    def bounds(at: SSAValue, limit: SSAValue) -> Bounds:
        zero = function.integer(0)
        before = function.subtract(zero, at)
        begin = function.select(function.compare("slt", at, zero), before, zero)
        left = function.subtract(limit, at)
        return begin, function.least(left, whole)

    def tile(row: SSAValue) -> None:
        line, column = function.divmod(function.add(first, row), parameters.columns)
        picture, line = function.divmod(line, parameters.rows)
        y = function.subtract(function.multiply(line, step), image.top)
        x = function.subtract(function.multiply(column, step), image.left)
        steps = ((picture, image.image), (y, image.line), (x, image.pixel))
        start = reduce(function.add, [function.multiply(at, stride) for at, stride in steps])
        lines, pixels = bounds(y, image.height), bounds(x, image.width)
        seen = [function.subtract(last, one) for one, last in (lines, pixels)]
        inside = [function.compare("eq", count, whole) for count in seen]
        points = function.gep(matrices, function.multiply(row, image.tile))
        is_inside = function.binary(llvm.AndOp, *inside)
        write(_Tile(vectors, image, start, lines, pixels, is_inside, points))

    function.for_range(begin, end, tile)
