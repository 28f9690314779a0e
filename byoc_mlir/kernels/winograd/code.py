"""Functions of one Winograd convolution, on all threads, and its matrix products.

A product multiplies one row per tile by a panel of the weights. A micro-kernel keeps the sums of a
few rows in registers, while it iterates over a part of the input channels. That part of the panel
stays in L1 for all tiles of a block; meanwhile the next part is prefetched to L2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.convolution import Slot, read_parameters
from byoc_mlir.kernels.gemm import Sums, add_products, clamped_rows, short_rows
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors, VectorUnit
from byoc_mlir.kernels.winograd.algorithm import Algorithm
from byoc_mlir.kernels.winograd.parameters import WinogradParameters
from byoc_mlir.kernels.winograd.pixels import Pixels
from byoc_mlir.kernels.winograd.tiles import define_result_transform, define_source_transform

_PREFIX = "byoc_winograd"

PART_BYTES = 24 << 10
"""Bytes of a panel's part: together with the rows, it fits in an L1 of 32 KB, the smallest of
x86-64 servers."""

_UNROLLED = 4
"""Unroll factor of the loop over channels, which divides the lanes of all vectors."""

Strips = tuple[int, ...]
"""Lengths of the strips, in tiles, the shortest first; that one serves shorter strips, too."""


def strips_of(tiles: Iterable[int], unit: VectorUnit) -> Strips:
    """Returns the lengths of strips into which blocks are cut; `tiles` are the possible numbers of
    tiles of a block.
    """
    lengths: set[int] = set()
    for count in tiles:
        strips = -(-count // unit.tile_rows)
        lengths |= {count // strips, -(-count // strips)}
    short = short_rows(unit.panel_vectors)
    return tuple(sorted({max(length, short) for length in lengths}))


def strips_suffix(strips: Strips) -> str:
    """Returns a symbol suffix that distinguishes functions for different strips."""
    return "_".join(map(str, strips))


def define_product(module: ModuleBuilder, unit: VectorUnit, strips: Strips) -> str:
    """Defines `void (parameters, source, weights, result, tiles, begin, end)`; returns its
    symbol.

    The function computes the products of one block for panels `begin` to `end`, where panels are
    numbered across all matrices.
    """
    name = f"{_PREFIX}_product_{unit.tile}_{strips_suffix(strips)}"
    if module.has(name):
        return name
    kernels = {rows: _define_kernel(module, unit, rows) for rows in strips}
    function = module.vectorised(name, (*(POINTER,) * 4, i64, i64, i64))
    address, source, weights, result, tiles, begin, end = function.parameters
    parameters = read(function, address, WinogradParameters[SSAValue])
    inputs, outputs = parameters.source.matrix, parameters.result.matrix
    source_stride, result_stride = parameters.source.tile, parameters.result.tile
    count = function.divide(function.add(tiles, unit.tile_rows - 1), unit.tile_rows)
    panel_size = function.multiply(inputs, unit.panel)
    most = PART_BYTES // (f32.size * unit.panel)
    parts = function.divide(function.add(inputs, most - 1), most)

    def panel(number: SSAValue) -> None:
        matrix, column = function.divmod(number, parameters.panels)
        held = function.gep(weights, function.multiply(number, panel_size))
        read_from = function.gep(source, function.multiply(matrix, inputs))
        write_to = function.gep(result, function.multiply(matrix, outputs))
        write_to = function.gep(write_to, function.multiply(column, unit.panel))
        function.loop(parts, partial(part, held, read_from, write_to))

    def part(held: SSAValue, read_from: SSAValue, write_to: SSAValue, number: SSAValue) -> None:
        vectors = function.divide(inputs, unit.lanes)
        first, last = (
            function.multiply(one, unit.lanes) for one in function.share(vectors, number, parts)
        )
        steps = function.subtract(last, first)
        held = function.gep(held, function.multiply(first, unit.panel))
        following = function.gep(held, function.multiply(steps, unit.panel))
        read_from = function.gep(read_from, first)

        def strip(index: SSAValue) -> None:
            first, last = function.share(tiles, index, count)
            rows = function.gep(read_from, function.multiply(first, source_stride))
            to = function.gep(write_to, function.multiply(first, result_stride))
            distance = function.divide(function.integer(unit.panel), count)  # shared by strips
            passed = function.multiply(index, function.multiply(steps, distance))
            ahead = function.gep(following, passed)
            length = function.subtract(last, first)
            operands = (
                rows,
                source_stride,
                held,
                steps,
                to,
                result_stride,
                ahead,
                distance,
                number,
                length,
            )
            for size, kernel in kernels.items():
                predicate = "sle" if size == strips[0] else "eq"
                chosen = function.compare(predicate, length, function.integer(size))
                function.when(chosen, partial(function.do, kernel, *operands))

        function.loop(count, strip)

    function.for_range(begin, end, panel)
    function.finish()
    return name


def _define_kernel(module: ModuleBuilder, unit: VectorUnit, rows: int) -> str:
    """Defines the micro-kernel for `rows` rows; returns its symbol.

    Its type is `void (source, source_stride, panel, steps, result, result_stride, ahead, distance,
    part, left)`. It multiplies the rows by a part of a panel, of `steps` input channels, and adds
    the product to the sums of earlier parts. It prefetches from `ahead`, `distance` elements for
    each channel. The kernel of the fewest rows repeats the last row if fewer are left.
    """
    name = f"{_PREFIX}_kernel_{rows}_{unit.tile}"
    if module.has(name):
        return name
    types = (POINTER, i64, POINTER, i64, POINTER, i64, POINTER, i64, i64, i64)
    function = module.vectorised(name, types)
    source, source_stride, panel, steps, result, result_stride, *others = function.parameters
    ahead, distance, part, left = others
    vectors = Vectors(function, unit.lanes)
    is_short = rows == short_rows(unit.panel_vectors)
    numbers = clamped_rows(function, rows, left) if is_short else range(rows)
    sources = [function.gep(source, function.multiply(source_stride, n)) for n in numbers]
    results = [function.gep(result, function.multiply(result_stride, n)) for n in numbers]
    places = [
        function.gep(to, column) for to in results for column in range(0, unit.panel, unit.lanes)
    ]

    def add_vector(index: SSAValue, sums: Sums) -> Sums:
        first = function.multiply(index, _UNROLLED)
        for step in range(_UNROLLED):
            sums = add_input(function.add(first, step), sums)
        return sums

    def add_input(index: SSAValue, sums: Sums) -> Sums:
        function.prefetch(function.gep(ahead, function.multiply(index, distance)), cache=2)
        weights = function.gep(panel, function.multiply(index, unit.panel))
        addresses = [function.gep(values, index) for values in sources]
        row = vectors.row(weights, unit.panel)
        return add_products(vectors.multiply_add, map(vectors.repeated, addresses), row, sums)

    zero = vectors.splat(0.0)
    before = function.branch(
        function.compare("eq", part, function.integer(0)),
        lambda: [zero] * len(places),
        lambda: list(map(vectors.load, places)),
        *[zero.type] * len(places),
    )
    rounds = function.divide(steps, _UNROLLED)
    for total, place in zip(function.fold(rounds, list(before), add_vector), places, strict=True):
        vectors.store(total, place)
    function.finish()
    return name


def define_winograd(
    module: ModuleBuilder,
    *,
    unit: VectorUnit,
    algorithm: Algorithm,
    strips: Strips,
    pixels: Pixels,
) -> str:
    """Defines `void (slots)`, which runs one convolution with the arguments of `Slot`.

    `strips` are the strips of all blocks. Returns the function's symbol.
    """
    suffix = strips_suffix(strips) + pixels.of_source + pixels.of_result
    name = f"{_PREFIX}_{algorithm.name}_{unit.tile}_{suffix}"
    if module.has(name):
        return name
    steps = (
        define_source_transform(module, unit, algorithm, pixels),
        define_product(module, unit, strips),
        define_result_transform(module, unit, algorithm, pixels),
    )
    blocks = _define_blocks(module, f"{name}_blocks", algorithm, steps)
    source, product, result = (
        _define_step(module, step, run)
        for step, run in zip(steps, (_transform_source, _multiply, _transform_result), strict=True)
    )
    function = module.vectorised(name, (POINTER,))
    (slots,) = function.parameters
    parameters = read_parameters(function, slots, WinogradParameters[SSAValue])
    threads = function.insert(llvm.TruncOp(parameters.threads, i32))
    panels = function.multiply(parameters.panels, algorithm.matrices)

    def run(body: str, total: SSAValue) -> None:
        function.parallel_for(body, slots, total, threads)

    def run_one_block() -> None:
        run(source, parameters.tiles)
        run(product, panels)
        run(result, parameters.tiles)

    count, one = parameters.blocks, function.integer(1)
    function.when(function.compare("eq", count, one), run_one_block)
    function.when(function.compare("ne", count, one), lambda: run(blocks, count))
    function.finish()
    return name


@dataclass(frozen=True)
class _Block:
    """Block of tiles that one thread processes: the pointers and sizes that its generated code
    uses.
    """

    function: FunctionBuilder
    slots: SSAValue
    sources: SSAValue
    results: SSAValue
    """Result matrices of the block; `sources` are its source matrices."""
    first: SSAValue
    tiles: SSAValue
    """Number of tiles in the block; `first` is its first tile."""

    @staticmethod
    def of(
        function: FunctionBuilder,
        slots: SSAValue,
        parameters: WinogradParameters[SSAValue],
        number: SSAValue,
        first: SSAValue,
        tiles: SSAValue,
    ) -> _Block:
        """Returns the block whose matrices begin `number` blocks after the start of the
        workspace.
        """
        offset = function.multiply(number, parameters.block)
        sources = function.gep(function.pointer(slots, Slot.WORKSPACE), offset)
        results = function.gep(sources, parameters.results)
        return _Block(function, slots, sources, results, first, tiles)

    def pointer(self, slot: Slot) -> SSAValue:
        """Loads the pointer in a slot."""
        return self.function.pointer(self.slots, slot)


Step = Callable[[_Block, str, SSAValue, SSAValue], None]
"""Generator of the call that runs one step on a part of a block."""


def _transform_source(block: _Block, name: str, begin: SSAValue, end: SSAValue) -> None:
    images = (block.pointer(Slot.SOURCE), block.sources)
    block.function.do(name, block.pointer(Slot.PARAMETERS), *images, block.first, begin, end)


def _multiply(block: _Block, name: str, begin: SSAValue, end: SSAValue) -> None:
    operands = (block.sources, block.pointer(Slot.WEIGHTS), block.results)
    block.function.do(name, block.pointer(Slot.PARAMETERS), *operands, block.tiles, begin, end)


def _transform_result(block: _Block, name: str, begin: SSAValue, end: SSAValue) -> None:
    images = (block.pointer(Slot.RESULT), block.results)
    added = (block.pointer(Slot.BIAS), block.pointer(Slot.RESIDUAL))
    parameters = block.pointer(Slot.PARAMETERS)
    block.function.do(name, parameters, *images, block.first, begin, end, *added)


def _define_blocks(
    module: ModuleBuilder, name: str, algorithm: Algorithm, steps: tuple[str, str, str]
) -> str:
    """Defines `void (slots, begin, end)`, which runs all steps of a range of blocks on one thread.

    Returns its symbol.
    """
    function = module.vectorised(name, (POINTER, i64, i64))
    slots, begin, end = function.parameters
    parameters = read_parameters(function, slots, WinogradParameters[SSAValue])
    thread = function.thread_number()
    panels = function.multiply(parameters.panels, algorithm.matrices)
    zero = function.integer(0)
    source, product, result = steps

    def block(number: SSAValue) -> None:
        first, last = function.share(parameters.tiles, number, parameters.blocks)
        tiles = function.subtract(last, first)
        one = _Block.of(function, slots, parameters, thread, first, tiles)
        _transform_source(one, source, zero, tiles)
        _multiply(one, product, zero, panels)
        _transform_result(one, result, zero, tiles)

    function.for_range(begin, end, block)
    function.finish()
    return name


def _define_step(module: ModuleBuilder, step: str, run: Step) -> str:
    """Defines `void (slots, begin, end)`, which runs a part of one step, for the case that all
    tiles are one block.

    Returns its symbol.
    """
    name = f"{step}_of_all"
    if module.has(name):
        return name
    function = module.vectorised(name, (POINTER, i64, i64))
    slots, begin, end = function.parameters
    zero = function.integer(0)
    parameters = read_parameters(function, slots, WinogradParameters[SSAValue])
    run(_Block.of(function, slots, parameters, zero, zero, parameters.tiles), step, begin, end)
    function.finish()
    return name
