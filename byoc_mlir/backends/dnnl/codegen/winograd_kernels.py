"""The transforms around the products of Winograd's algorithm, see `winograd.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, i1, i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import (
    POINTER,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
)
from byoc_mlir.backends.dnnl.codegen.winograd_vectors import (
    ELEMENT_BYTES,
    VECTOR,
    both_axes,
    broadcast,
    element,
    limited,
    load,
    result_axis,
    source_axis,
    splat,
    store,
    weighted_sum,
)
from byoc_mlir.backends.dnnl.winograd import LANES, STEP, TILE

_PREFIX = "byoc_dnnl_winograd"
_SLOT_BYTES = 8
_PAIR_SLOTS = 2

_ARGUMENTS, _BLOCKS, _BLOCK_TILES, _TILES, _COLUMNS, _ROWS, _SOURCE = range(7)
"""Words of the table: how many arguments the product takes; the blocks, the tiles of one and of
all; the tiles of an image along both axes; then an image each for source and result, then limits.
"""
(_HEIGHT, _WIDTH, _TOP, _LEFT, _GROUPS, _IMAGE, _GROUP, _LINE, _PIXEL, _PLANE, _CHANNELS) = range(
    11
)
"""Words of an image: its size, its padding, its groups of 8 channels; the elements from image to
image, group to group, line to line, pixel to pixel; those from matrix to matrix and row to row."""
_IMAGE_WORDS = 11
_RESULT = _SOURCE + _IMAGE_WORDS
_LIMITS = _RESULT + _IMAGE_WORDS

_PIXELS, _MATRICES, _FIRST, _COUNT, _TABLE, _BIAS, _RESIDUAL, _DATA_SLOTS = range(8)
"""Slots of what the threads are given: image, matrices, the first tile and how many, the table."""


def add_winograd(module: ModuleBuilder, *, bias: bool, residual: bool) -> str:
    """`i32 (primitive, stream, arguments, table)`: runs one convolution.

    The arguments are those of the product, the matrices of the source first, its result third;
    then source, result, bias and residual.
    """
    suffix = ("_bias" if bias else "") + ("_sum" if residual else "")
    name = f"{_PREFIX}{suffix}"
    if module.has(name):
        return name
    source = _add_source_transform(module)
    result = _add_result_transform(module, suffix, bias=bias, residual=residual)
    function = module.function(name, (POINTER,) * 4, internal=True)
    primitive, stream, pairs, table = function.parameters
    data, handle = function.stack_slots(_DATA_SLOTS), function.stack_slot()
    status = function.stack_slot()
    count = function.word(table, _ARGUMENTS)
    tiles, total = function.word(table, _BLOCK_TILES), function.word(table, _TILES)

    def address(pair: SSAValue) -> SSAValue:
        """The memory of an argument."""
        slot = _scaled(function, pair, _PAIR_SLOTS, 1)
        memory = function.pointer(pairs, slot)
        function.check(function.call("dnnl_memory_get_data_handle", memory, handle))
        return function.load(handle, POINTER)

    matrices = [address(function.integer(pair)) for pair in (0, 2)]
    images = [address(_scaled(function, count, 1, offset)) for offset in (0, 1)]
    others = [slot for slot, has in ((_BIAS, bias), (_RESIDUAL, residual)) if has]
    for offset, slot in enumerate(others, 2):
        function.store(address(_scaled(function, count, 1, offset)), function.slot(data, slot))
    function.store(table, function.slot(data, _TABLE))

    def transform(side: int, body: str) -> None:
        function.store(images[side], function.slot(data, _PIXELS))
        function.store(matrices[side], function.slot(data, _MATRICES))
        zero = function.integer(0, i32)
        function.do("GOMP_parallel", function.address(body), data, zero, zero)

    def block(index: SSAValue) -> None:
        first = function.binary(llvm.MulOp, index, tiles)
        left = function.binary(llvm.SubOp, total, first)
        is_last = function.compare("slt", left, tiles)
        function.store(first, function.slot(data, _FIRST))
        function.store(function.select(is_last, left, tiles), function.slot(data, _COUNT))
        transform(0, source)
        arguments = function.word(table, _ARGUMENTS, i32)
        done = function.call("dnnl_primitive_execute", primitive, stream, arguments, pairs)
        before = function.load(status, i32)
        function.store(function.binary(llvm.OrOp, before, done), status)
        transform(1, result)

    function.loop(function.word(table, _BLOCKS), block)
    function.finish(function.load(status, i32))
    return name


def _scaled(function: FunctionBuilder, value: SSAValue, factor: int, offset: int) -> SSAValue:
    """`value * factor + offset`."""
    if factor != 1:
        value = function.binary(llvm.MulOp, value, function.integer(factor))
    return function.binary(llvm.AddOp, value, function.integer(offset)) if offset else value


@dataclass(frozen=True)
class _Tile:
    """A tile and 8 of its channels, in the code of a thread: all in elements and pixels."""

    function: FunctionBuilder
    image: Sequence[SSAValue]
    matrices: SSAValue
    size: int
    y: SSAValue
    x: SSAValue
    start: SSAValue
    """From the first pixel of the first image to the tile's."""
    channel: SSAValue

    def inside(self) -> SSAValue:
        """Whether all pixels of the tile are in the image."""
        return self._contains(self.y, self.x, self.size - 1)

    def contains(self, y: SSAValue, x: SSAValue) -> SSAValue:
        """Whether a pixel of the tile is in the image."""
        add = partial(self.function.binary, llvm.AddOp)
        return self._contains(add(self.y, y), add(self.x, x), 0)

    def _contains(self, y: SSAValue, x: SSAValue, further: int) -> SSAValue:
        function = self.function
        checks = [
            function.compare("ult", one, self.image[limit])
            for at, limit in ((y, _HEIGHT), (x, _WIDTH))
            for one in dict.fromkeys((at, _scaled(function, at, 1, further)))
        ]
        return reduce(partial(function.binary, llvm.AndOp), checks)

    def pixel(self, pixels: _Pixels, y: int | SSAValue, x: int | SSAValue) -> SSAValue:
        """The address of the 8 channels of a pixel of the tile."""
        function = self.function
        at_y, at_x = (function.integer(one) if isinstance(one, int) else one for one in (y, x))
        offset = function.binary(
            llvm.AddOp,
            function.binary(llvm.MulOp, at_y, pixels.line),
            function.binary(llvm.MulOp, at_x, pixels.step),
        )
        return element(function, pixels.base, offset)

    def around(self, memory: SSAValue) -> _Pixels:
        """The tile in the memory of the image."""
        base = element(self.function, memory, self.start)
        return _Pixels(base, self.image[_LINE], self.image[_PIXEL])

    def point(self, number: int) -> SSAValue:
        """The address of the 8 channels in one of the matrices."""
        return element(
            self.function, self.matrices, _scaled(self.function, self.image[_PLANE], number, 0)
        )

    def each_pixel(self, body: Callable[[SSAValue, SSAValue], None]) -> None:
        """A loop over the pixels of the tile."""
        function, size = self.function, self.function.integer(self.size)

        def pixel(index: SSAValue) -> None:
            y = function.binary(llvm.SDivOp, index, size)
            body(y, function.binary(llvm.SRemOp, index, size))

        function.loop(function.integer(self.size**2), pixel)


@dataclass(frozen=True)
class _Pixels:
    """Pixels in memory: the first, and how many elements there are to the next ones."""

    base: SSAValue
    line: SSAValue
    step: SSAValue

    def or_else(self, function: FunctionBuilder, condition: SSAValue, other: _Pixels) -> _Pixels:
        """These if the condition holds, else the others."""
        return _Pixels(
            function.select(condition, self.base, other.base),
            function.select(condition, self.line, other.line),
            function.select(condition, self.step, other.step),
        )


_Write = Callable[[_Tile, SSAValue], None]
"""Writes what is done with a tile, whose image begins at the given address."""


def _buffer(function: FunctionBuilder, size: int) -> _Pixels:
    """Memory on the stack for a tile of its own."""
    base = function.stack_slots(size**2 * LANES * ELEMENT_BYTES // _SLOT_BYTES)
    return _Pixels(base, function.integer(size * LANES), function.integer(LANES))


def _add_source_transform(module: ModuleBuilder) -> str:
    """`void (data)`: pixels of the source to matrices, zeros around the image."""
    name = f"{_PREFIX}_source"
    if module.has(name):
        return name
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    buffer, zero = _buffer(function, TILE), splat(function, 0.0)

    def write(tile: _Tile, memory: SSAValue) -> None:
        image, inside = tile.around(memory), tile.inside()

        def copy(y: SSAValue, x: SSAValue) -> None:
            found = function.branch(
                tile.contains(y, x),
                lambda: load(function, tile.pixel(image, y, x)),
                lambda: zero,
                VECTOR,
            )
            store(function, found, tile.pixel(buffer, y, x))

        outside = function.compare("eq", inside, function.integer(0, i1))
        function.when(outside, lambda: tile.each_pixel(copy))
        pixels = image.or_else(function, inside, buffer)
        read = [
            [load(function, tile.pixel(pixels, y, x)) for x in range(TILE)] for y in range(TILE)
        ]
        for number, value in enumerate(both_axes(function, source_axis, read)):
            store(function, value, tile.point(number))

    _each_tile(function, _SOURCE, TILE, write)
    return name


def _add_result_transform(module: ModuleBuilder, suffix: str, *, bias: bool, residual: bool) -> str:
    """`void (data)`: matrices to pixels of the result, which may add to what `residual` holds."""
    name = f"{_PREFIX}_result{suffix}"
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (data,) = function.parameters
    buffer, other_buffer = _buffer(function, STEP), _buffer(function, STEP)
    table = function.pointer(data, _TABLE)
    lower, upper = (
        broadcast(function, function.word(table, _LIMITS + limit, f32)) for limit in range(2)
    )

    def write(tile: _Tile, memory: SSAValue) -> None:
        image, inside = tile.around(memory), tile.inside()
        added = tile.around(function.pointer(data, _RESIDUAL)) if residual else None
        pixels = image.or_else(function, inside, buffer)
        outside = function.compare("eq", inside, function.integer(0, i1))
        read = [
            [load(function, tile.point(y * TILE + x)) for x in range(TILE)] for y in range(TILE)
        ]
        values = list(both_axes(function, result_axis, read))
        if bias:
            biases = element(function, function.pointer(data, _BIAS), tile.channel)
            of_channels = load(function, biases)
            values = [weighted_sum(function, (1, value), (1, of_channels)) for value in values]
        if added is not None:
            _move(tile, outside, added, other_buffer)
            terms = added.or_else(function, inside, other_buffer)
            values = [
                weighted_sum(
                    function,
                    (1, value),
                    (1, load(function, tile.pixel(terms, *divmod(number, STEP)))),
                )
                for number, value in enumerate(values)
            ]
        for number, value in enumerate(values):
            bounded = limited(function, value, lower, upper)
            store(function, bounded, tile.pixel(pixels, *divmod(number, STEP)))
        _move(tile, outside, buffer, image)

    _each_tile(function, _RESULT, STEP, write)
    return name


def _move(tile: _Tile, condition: SSAValue, source: _Pixels, destination: _Pixels) -> None:
    """Copies the pixels that are in the image, if the condition holds."""
    function = tile.function

    def copy(y: SSAValue, x: SSAValue) -> None:
        function.when(
            tile.contains(y, x),
            lambda: store(
                function,
                load(function, tile.pixel(source, y, x)),
                tile.pixel(destination, y, x),
            ),
        )

    function.when(condition, lambda: tile.each_pixel(copy))


def _each_tile(function: FunctionBuilder, image_word: int, size: int, write: _Write) -> None:
    """Writes the loops over this thread's tiles, and over the channels of each; then returns."""
    (data,) = function.parameters
    table = function.pointer(data, _TABLE)
    memory, matrices = function.pointer(data, _PIXELS), function.pointer(data, _MATRICES)
    image = [function.word(table, image_word + word) for word in range(_IMAGE_WORDS)]
    first, count = function.word(data, _FIRST), function.word(data, _COUNT)
    thread, team = (
        function.widened(function.call(name))
        for name in ("omp_get_thread_num", "omp_get_num_threads")
    )
    begin, end = (
        function.binary(llvm.SDivOp, function.binary(llvm.MulOp, count, share), team)
        for share in (thread, _scaled(function, thread, 1, 1))
    )
    multiply, add = partial(function.binary, llvm.MulOp), partial(function.binary, llvm.AddOp)

    def tile(index: SSAValue) -> None:
        row = add(begin, index)
        line, column = _divided(function, add(first, row), function.word(table, _COLUMNS))
        picture, line = _divided(function, line, function.word(table, _ROWS))
        y = function.binary(llvm.SubOp, _scaled(function, line, STEP, 0), image[_TOP])
        x = function.binary(llvm.SubOp, _scaled(function, column, STEP, 0), image[_LEFT])
        steps = ((picture, _IMAGE), (y, _LINE), (x, _PIXEL))
        start = reduce(add, [multiply(at, image[word]) for at, word in steps])
        rows = element(function, matrices, multiply(row, image[_CHANNELS]))

        def channels(group: SSAValue) -> None:
            channel = _scaled(function, group, LANES, 0)
            further = add(start, multiply(group, image[_GROUP]))
            points = element(function, rows, channel)
            write(_Tile(function, image, points, size, y, x, further, channel), memory)

        function.loop(image[_GROUPS], channels)

    function.loop(function.binary(llvm.SubOp, end, begin), tile)
    function.finish()


def _divided(function: FunctionBuilder, value: SSAValue, by: SSAValue) -> tuple[SSAValue, SSAValue]:
    quotient = function.binary(llvm.SDivOp, value, by)
    return quotient, function.binary(llvm.SRemOp, value, by)
