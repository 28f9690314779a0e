"""Transforms of tiles before and after the matrix products of Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects import llvm
from xdsl.dialects.builtin import VectorType, i1, i64
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


def _multiples(function: FunctionBuilder, step: SSAValue, count: int) -> list[SSAValue]:
    """Returns `0`, `step`, `2 step`, … for `count` multiples."""
    return [function.multiply(step, number) for number in range(count)]


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

    def addresses(self, function: FunctionBuilder, size: int) -> list[list[SSAValue]]:
        """Returns the addresses of `size` rows of `size` pixels."""
        element, steps = self.vector.element_type, _multiples(function, self.step, size)
        lines = [
            function.gep(self.base, line, element) for line in _multiples(function, self.line, size)
        ]
        return [[function.gep(line, step, element) for step in steps] for line in lines]

    def load(self, function: FunctionBuilder, address: SSAValue) -> SSAValue:
        """Loads the vector at an address."""
        return function.load(address, self.vector, _bytes(self.vector.element_type))

    def store(self, function: FunctionBuilder, vector: SSAValue, address: SSAValue) -> None:
        """Stores a vector to an address."""
        function.store(vector, address, _bytes(self.vector.element_type))

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
    points: SSAValue
    """Address of the tile's row in the first matrix."""
    matrices: Sequence[SSAValue]
    """Elements from the first matrix to each matrix."""

    @property
    def _function(self) -> FunctionBuilder:
        return self.vectors.function

    def pixels(self, memory: SSAValue, vector: SSAValue, element: Element) -> _Grid:
        """Returns the grid of one channel vector of the tile's pixels in the image."""
        offset = self._function.multiply(vector, self.image.vector)
        base = self._function.gep(memory, self._function.add(self.start, offset), element)
        type_ = VectorType(element, [self.vectors.lanes])
        return _Grid(base, self.image.line, self.image.pixel, type_)

    def point_addresses(self, vector: SSAValue) -> list[SSAValue]:
        """Returns the addresses of a channel vector in all matrices."""
        offset = self._function.multiply(vector, self.vectors.lanes)
        row = self._function.gep(self.points, offset)
        return [self._function.gep(row, matrix) for matrix in self.matrices]

    def unless_inside(self, body: Callable[[], None]) -> None:
        """Generates code that runs `body` only if the tile reaches beyond the image."""
        zero = self._function.integer(0, i1)
        self._function.when(self._function.compare("eq", self.is_inside, zero), body)

    def copy(self, source: _Grid, destination: _Grid) -> None:
        """Copies the tile's pixels that are in the image, for a tile that reaches beyond it."""
        function = self._function

        def line(index: SSAValue) -> None:
            y = function.add(self.lines[0], index)

            def pixel(index: SSAValue) -> None:
                x = function.add(self.columns[0], index)
                value = source.load(function, source.at(function, y, x))
                destination.store(function, value, destination.at(function, y, x))

            function.loop(function.subtract(self.columns[1], self.columns[0]), pixel)

        lines = function.subtract(self.lines[1], self.lines[0])
        self.unless_inside(lambda: function.loop(lines, line))

    def residuals(
        self, memory: SSAValue, vector: SSAValue, buffer: _Grid, size: int
    ) -> Callable[[int, int], SSAValue]:
        """Returns the loader of a pixel's residual vector.

        A tile that reaches beyond the image loads from a buffer, to which its pixels are copied
        first.
        """
        function, element = self._function, buffer.vector.element_type
        image = self.pixels(memory, vector, element)
        self.copy(image, buffer)
        seen = image.or_else(function, self.is_inside, buffer)
        addresses = seen.addresses(function, size)
        return lambda y, x: seen.load(function, addresses[y][x])


def _buffer(vectors: Vectors, size: int, element: Element) -> _Grid:
    """Allocates memory on the stack for one vector of each pixel of a tile."""
    function, lanes = vectors.function, vectors.lanes
    base = function.stack_slots(-(-(size**2) * lanes * _bytes(element) // _SLOT_BYTES))
    line, step = function.integer(size * lanes), function.integer(lanes)
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
    buffer, given = _buffer(vectors, size, pixels.element), pixels.source(vectors, address)
    axis = partial(source_axis, vectors, algorithm)

    def write(tile: _Tile) -> None:
        def clear(index: SSAValue) -> None:
            place = function.multiply(index, unit.lanes)
            address = function.gep(buffer.base, place, pixels.element)
            buffer.store(function, given.padding, address)

        tile.unless_inside(lambda: function.loop(function.integer(size**2), clear))

        def transform(vector: SSAValue) -> None:
            image = tile.pixels(source, vector, pixels.element)
            tile.copy(image, buffer)
            seen = image.or_else(function, tile.is_inside, buffer)
            lines = [
                axis([given.numbers(seen.load(function, address)) for address in line])
                for line in seen.addresses(function, size)
            ]
            points = tile.point_addresses(vector)
            for x, column in enumerate(zip(*lines, strict=True)):
                for y, value in enumerate(axis(column)):
                    vectors.store(value, points[y * size + x])

        function.loop(tile.image.vectors, transform)

    sizes = (algorithm.step, size)
    memory = (matrices, _multiples(function, parameters.source.matrix, algorithm.matrices))
    _each_tile(vectors, parameters, parameters.source, memory, tiles, sizes, write)
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
    buffer, term_buffer = (_buffer(vectors, size, pixels.element) for _ in range(2))
    axis = partial(result_axis, vectors, algorithm)

    def write(tile: _Tile) -> None:
        def transform(vector: SSAValue) -> None:
            image = tile.pixels(result, vector, pixels.element)
            written = image.or_else(function, tile.is_inside, buffer)
            places = written.addresses(function, size)
            finished = of_channels(vector)
            residuals = (
                tile.residuals(terms, vector, term_buffer, size) if pixels.has_residual else None
            )
            points, side = tile.point_addresses(vector), algorithm.tile
            columns = [
                axis([vectors.load(point) for point in points[x::side]]) for x in range(side)
            ]
            for y, line in enumerate(zip(*columns, strict=True)):
                for x, value in enumerate(axis(line)):
                    added = None if residuals is None else residuals(y, x)
                    written.store(function, finished(value, added), places[y][x])
            tile.copy(buffer, image)

        function.loop(tile.image.vectors, transform)

    memory = (matrices, _multiples(function, parameters.result.matrix, algorithm.matrices))
    _each_tile(vectors, parameters, parameters.result, memory, tiles, (size, size), write)
    function.finish()
    return name


def _each_tile(
    vectors: Vectors,
    parameters: WinogradParameters[SSAValue],
    image: ImageParameters[SSAValue],
    memory: tuple[SSAValue, Sequence[SSAValue]],
    tiles: Sequence[SSAValue],
    sizes: tuple[int, int],
    write: Callable[[_Tile], None],
) -> None:
    """Generates a loop over tiles.

    Args:
        vectors: builder of the code.
        parameters: parameters of the convolution.
        image: parameters of the image that is tiled.
        memory: first row of the block's matrices, and the elements to each matrix.
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

    def tile(index: SSAValue) -> None:
        row = function.add(begin, index)
        line, column = function.divmod(function.add(first, row), parameters.columns)
        picture, line = function.divmod(line, parameters.rows)
        y = function.subtract(function.multiply(line, step), image.top)
        x = function.subtract(function.multiply(column, step), image.left)
        steps = ((picture, image.image), (y, image.line), (x, image.pixel))
        start = reduce(function.add, [function.multiply(at, stride) for at, stride in steps])
        lines, pixels = bounds(y, image.height), bounds(x, image.width)
        seen = [function.subtract(last, one) for one, last in (lines, pixels)]
        inside = [function.compare("eq", count, whole) for count in seen]
        matrices, distances = memory
        points = function.gep(matrices, function.multiply(row, image.tile))
        is_inside = function.binary(llvm.AndOp, *inside)
        write(_Tile(vectors, image, start, lines, pixels, is_inside, points, distances))

    function.loop(function.subtract(end, begin), tile)
