"""The transforms of tiles before and after the products of Winograd's algorithm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import (
    POINTER,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
)
from byoc_mlir.backends.dnnl.codegen.vectors import (
    ELEMENT_BYTES,
    broadcast,
    divided,
    element,
    limited,
    load,
    scaled,
    splat,
    store,
    weighted_sum,
)
from byoc_mlir.backends.dnnl.codegen.winograd_axes import result_axis, source_axis
from byoc_mlir.backends.dnnl.codegen.winograd_table import ImageWord, Table, Word
from byoc_mlir.backends.dnnl.own_layouts import LANES
from byoc_mlir.backends.dnnl.winograd import Algorithm

_PREFIX = "byoc_dnnl_winograd"
_SLOT_BYTES = 8

Bounds = tuple[SSAValue, SSAValue]
"""The first pixel along an axis and the one behind the last."""


@dataclass(frozen=True)
class _Pixels:
    """Pixels in memory: the first, and how many elements there are to the next ones."""

    base: SSAValue
    line: SSAValue
    step: SSAValue

    def at(self, function: FunctionBuilder, y: int | SSAValue, x: int | SSAValue) -> SSAValue:
        """The address of the 8 channels of a pixel."""
        at_y, at_x = (function.integer(one) if isinstance(one, int) else one for one in (y, x))
        lines = function.binary(llvm.MulOp, at_y, self.line)
        steps = function.binary(llvm.MulOp, at_x, self.step)
        return element(function, self.base, function.binary(llvm.AddOp, lines, steps))

    def or_else(self, function: FunctionBuilder, condition: SSAValue, other: _Pixels) -> _Pixels:
        """These if the condition holds, else the others."""
        return _Pixels(
            function.select(condition, self.base, other.base),
            function.select(condition, self.line, other.line),
            function.select(condition, self.step, other.step),
        )


@dataclass(frozen=True)
class _Tile:
    """A tile, in the code of a thread: all in elements and pixels."""

    function: FunctionBuilder
    image: Callable[[ImageWord], SSAValue]
    start: SSAValue
    """From the first pixel of the first image to the tile's."""
    lines: Bounds
    columns: Bounds
    """Its pixels that are in the image."""
    is_inside: SSAValue
    """Whether all are."""
    points: SSAValue
    """Its rows of the matrices."""

    def pixels(self, memory: SSAValue, group: SSAValue) -> _Pixels:
        """8 channels of it in the memory of the image."""
        function = self.function
        offset = function.binary(llvm.MulOp, group, self.image(ImageWord.GROUP))
        offset = function.binary(llvm.AddOp, self.start, offset)
        line, pixel = self.image(ImageWord.LINE), self.image(ImageWord.PIXEL)
        return _Pixels(element(function, memory, offset), line, pixel)

    def point(self, group: SSAValue, number: int) -> SSAValue:
        """The address of 8 channels in one of the matrices."""
        function = self.function
        row = element(function, self.points, scaled(function, group, LANES))
        return element(function, row, scaled(function, self.image(ImageWord.MATRIX), number))

    def unless_inside(self, body: Callable[[], None]) -> None:
        """Runs `body` for a tile that reaches beyond the image."""
        zero = self.function.integer(0, i1)
        self.function.when(self.function.compare("eq", self.is_inside, zero), body)

    def copy(self, source: _Pixels, destination: _Pixels) -> None:
        """Copies what is in the image, for a tile that reaches beyond it."""
        function = self.function
        add, subtract = (partial(function.binary, op) for op in (llvm.AddOp, llvm.SubOp))

        def line(index: SSAValue) -> None:
            y = add(self.lines[0], index)

            def pixel(index: SSAValue) -> None:
                x = add(self.columns[0], index)
                value = load(function, source.at(function, y, x))
                store(function, value, destination.at(function, y, x))

            function.loop(subtract(self.columns[1], self.columns[0]), pixel)

        lines = subtract(self.lines[1], self.lines[0])
        self.unless_inside(lambda: function.loop(lines, line))


def _buffer(function: FunctionBuilder, size: int) -> _Pixels:
    """Memory on the stack for 8 channels of a tile."""
    base = function.stack_slots(size**2 * LANES * ELEMENT_BYTES // _SLOT_BYTES)
    return _Pixels(base, function.integer(size * LANES), function.integer(LANES))


def add_source_transform(module: ModuleBuilder, algorithm: Algorithm) -> str:
    """`void (table, source, matrices, first, begin, end)`: pixels to matrices.

    Transforms some tiles of a block, which begins with the tile `first`; there are zeros around
    the image.
    """
    name, size = f"{_PREFIX}_source_{algorithm.name}", algorithm.tile
    if module.has(name):
        return name
    types = (*(POINTER,) * 3, *(i64,) * 3)
    function = module.function(name, types, result=VOID, internal=True)
    address, source, matrices, *tiles = function.parameters
    buffer, zero = _buffer(function, size), splat(function, 0.0)
    axis = partial(source_axis, function, algorithm)

    def write(tile: _Tile) -> None:
        def clear(index: SSAValue) -> None:
            store(function, zero, element(function, buffer.base, scaled(function, index, LANES)))

        tile.unless_inside(lambda: function.loop(function.integer(size**2), clear))

        def channels(group: SSAValue) -> None:
            image = tile.pixels(source, group)
            tile.copy(image, buffer)
            pixels = image.or_else(function, tile.is_inside, buffer)
            lines = [
                axis([load(function, pixels.at(function, y, x)) for x in range(size)])
                for y in range(size)
            ]
            for x, column in enumerate(zip(*lines, strict=True)):
                for y, value in enumerate(axis(column)):
                    store(function, value, tile.point(group, y * size + x))

        function.loop(tile.image(ImageWord.GROUPS), channels)

    table = Table(function, address)
    _each_tile(table, table.source, matrices, tiles, (algorithm.step, size), write)
    function.finish()
    return name


def add_result_transform(
    module: ModuleBuilder, algorithm: Algorithm, *, bias: bool, residual: bool
) -> str:
    """`void (table, result, matrices, first, begin, end, bias, residual)`: matrices to pixels."""
    suffix = ("_bias" if bias else "") + ("_sum" if residual else "")
    name, size = f"{_PREFIX}_result_{algorithm.name}{suffix}", algorithm.step
    if module.has(name):
        return name
    types = (*(POINTER,) * 3, *(i64,) * 3, *(POINTER,) * 2)
    function = module.function(name, types, result=VOID, internal=True)
    address, result, matrices, *tiles, biases, terms = function.parameters
    table = Table(function, address)
    lower, upper = (broadcast(function, limit) for limit in table.limits())
    buffer, term_buffer = _buffer(function, size), _buffer(function, size)
    axis, points = partial(result_axis, function, algorithm), range(algorithm.tile)

    def write(tile: _Tile) -> None:
        def channels(group: SSAValue) -> None:
            image = tile.pixels(result, group)
            pixels = image.or_else(function, tile.is_inside, buffer)
            added: list[Callable[[int, int], SSAValue]] = []
            if bias:
                place = element(function, biases, scaled(function, group, LANES))
                of_channels = load(function, place)
                added.append(lambda y, x: of_channels)
            if residual:
                others = tile.pixels(terms, group)
                tile.copy(others, term_buffer)
                others = others.or_else(function, tile.is_inside, term_buffer)
                added.append(lambda y, x: load(function, others.at(function, y, x)))
            columns = [
                axis([load(function, tile.point(group, y * len(points) + x)) for y in points])
                for x in points
            ]
            for y, line in enumerate(zip(*columns, strict=True)):
                for x, value in enumerate(axis(line)):
                    total = weighted_sum(function, (1, value), *((1, one(y, x)) for one in added))
                    bounded = limited(function, total, lower, upper)
                    store(function, bounded, pixels.at(function, y, x))
            tile.copy(buffer, image)

        function.loop(tile.image(ImageWord.GROUPS), channels)

    _each_tile(table, table.result, matrices, tiles, (size, size), write)
    function.finish()
    return name


def _each_tile(
    table: Table,
    word: Callable[[ImageWord], SSAValue],
    matrices: SSAValue,
    tiles: Sequence[SSAValue],
    sizes: tuple[int, int],
    write: Callable[[_Tile], None],
) -> None:
    """Writes a loop over tiles.

    Args:
        table: the words.
        word: those of the image.
        matrices: the first row of the matrices of the block.
        tiles: the first of the block; where to begin in the block and where to end.
        sizes: the pixels from tile to tile, and those of one.
        write: writes what is done with one.
    """
    function, (first, begin, end), (step, size) = table.function, tiles, sizes
    multiply, add = partial(function.binary, llvm.MulOp), partial(function.binary, llvm.AddOp)
    words = {one: word(one) for one in ImageWord}
    columns, rows = table.word(Word.COLUMNS), table.word(Word.ROWS)
    whole = function.integer(size)

    def bounds(at: SSAValue, limit: SSAValue) -> Bounds:
        zero = function.integer(0)
        before = function.binary(llvm.SubOp, zero, at)
        begin = function.select(function.compare("slt", at, zero), before, zero)
        left = function.binary(llvm.SubOp, limit, at)
        return begin, function.select(function.compare("slt", left, whole), left, whole)

    def tile(index: SSAValue) -> None:
        row = add(begin, index)
        line, column = divided(function, add(first, row), columns)
        picture, line = divided(function, line, rows)
        y = function.binary(llvm.SubOp, scaled(function, line, step), words[ImageWord.TOP])
        x = function.binary(llvm.SubOp, scaled(function, column, step), words[ImageWord.LEFT])
        steps = ((picture, ImageWord.IMAGE), (y, ImageWord.LINE), (x, ImageWord.PIXEL))
        start = reduce(add, [multiply(at, words[stride]) for at, stride in steps])
        lines = bounds(y, words[ImageWord.HEIGHT])
        pixels = bounds(x, words[ImageWord.WIDTH])
        seen = [function.binary(llvm.SubOp, last, one) for one, last in (lines, pixels)]
        inside = [function.compare("eq", count, whole) for count in seen]
        points = element(function, matrices, multiply(row, words[ImageWord.TILE]))
        is_inside = function.binary(llvm.AndOp, *inside)
        write(_Tile(function, words.__getitem__, start, lines, pixels, is_inside, points))

    function.loop(function.binary(llvm.SubOp, end, begin), tile)
