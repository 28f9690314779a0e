"""The function of one convolution by Winograd's algorithm, on all threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, FunctionBuilder
from byoc_mlir.kernels.convolution import Slot
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.algorithm import Algorithm
from byoc_mlir.kernels.winograd.parameters import Parameters
from byoc_mlir.kernels.winograd.pixels import Pixels
from byoc_mlir.kernels.winograd.product import Strips, define_product, strips_suffix
from byoc_mlir.kernels.winograd.tiles import define_result_transform, define_source_transform

_PREFIX = "byoc_winograd"


def define_winograd(
    module: ModuleBuilder,
    *,
    unit: VectorUnit,
    algorithm: Algorithm,
    strips: Strips,
    pixels: Pixels,
) -> str:
    """`void (slots)`: runs one convolution; `Slot` tells what it is called with.

    `strips` are those of all blocks.
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
    parameters = _parameters(function, slots)
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


def _parameters(function: FunctionBuilder, slots: SSAValue) -> Parameters[SSAValue]:
    return read(function, function.pointer(slots, Slot.PARAMETERS), Parameters[SSAValue])


@dataclass(frozen=True)
class _Block:
    """Tiles that are handled together, in the code of a thread."""

    function: FunctionBuilder
    slots: SSAValue
    sources: SSAValue
    results: SSAValue
    """Its matrices."""
    first: SSAValue
    tiles: SSAValue
    """Its first tile and how many there are."""

    @staticmethod
    def of(
        function: FunctionBuilder,
        slots: SSAValue,
        parameters: Parameters[SSAValue],
        number: SSAValue,
        first: SSAValue,
        tiles: SSAValue,
    ) -> _Block:
        """The block whose matrices are that many blocks behind the start of the workspace."""
        offset = function.multiply(number, parameters.block)
        sources = function.gep(function.pointer(slots, Slot.WORKSPACE), offset)
        results = function.gep(sources, parameters.results)
        return _Block(function, slots, sources, results, first, tiles)

    def pointer(self, slot: Slot) -> SSAValue:
        """What stands in a slot."""
        return self.function.pointer(self.slots, slot)


Step = Callable[[_Block, str, SSAValue, SSAValue], None]
"""Writes the call of a function for a part of a block."""


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
    """`void (slots, begin, end)`: some blocks, by the thread that is called."""
    function = module.vectorised(name, (POINTER, i64, i64))
    slots, begin, end = function.parameters
    parameters = _parameters(function, slots)
    thread = function.thread_number()
    panels = function.multiply(parameters.panels, algorithm.matrices)
    zero = function.integer(0)
    source, product, result = steps

    def block(index: SSAValue) -> None:
        number = function.add(begin, index)
        first, last = function.share(parameters.tiles, number, parameters.blocks)
        tiles = function.subtract(last, first)
        one = _Block.of(function, slots, parameters, thread, first, tiles)
        _transform_source(one, source, zero, tiles)
        _multiply(one, product, zero, panels)
        _transform_result(one, result, zero, tiles)

    function.loop(function.subtract(end, begin), block)
    function.finish()
    return name


def _define_step(module: ModuleBuilder, step: str, run: Step) -> str:
    """`void (slots, begin, end)`: a part of one step, where all tiles are one block."""
    name = f"{step}_of_all"
    if module.has(name):
        return name
    function = module.vectorised(name, (POINTER, i64, i64))
    slots, begin, end = function.parameters
    zero, parameters = function.integer(0), _parameters(function, slots)
    run(_Block.of(function, slots, parameters, zero, zero, parameters.tiles), step, begin, end)
    function.finish()
    return name
