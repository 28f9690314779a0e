"""One convolution by Winograd's algorithm, on all threads; see `winograd.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import (
    POINTER,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
)
from byoc_mlir.backends.dnnl.codegen.own_arguments import read_addresses
from byoc_mlir.backends.dnnl.codegen.vectors import element, scaled, share
from byoc_mlir.backends.dnnl.codegen.winograd_product import add_product
from byoc_mlir.backends.dnnl.codegen.winograd_table import Table, Word
from byoc_mlir.backends.dnnl.codegen.winograd_tiles import (
    add_result_transform,
    add_source_transform,
)
from byoc_mlir.backends.dnnl.winograd import Algorithm

_PREFIX = "byoc_dnnl_winograd"

_MATRICES, _WEIGHTS, _SOURCE, _RESULT, _BIAS, _RESIDUAL, _TABLE, _DATA_SLOTS = range(8)
"""Slots of what the threads are given: addresses of memory, and of the words."""


def add_winograd(module: ModuleBuilder, algorithm: Algorithm, *, bias: bool, residual: bool) -> str:
    """`i32 (arguments, table)`: runs one convolution.

    The arguments are memory for the matrices, weights, source, result, then bias and residual.
    """
    suffix = ("_bias" if bias else "") + ("_sum" if residual else "")
    name = f"{_PREFIX}_{algorithm.name}{suffix}"
    if module.has(name):
        return name
    steps = (
        add_source_transform(module, algorithm),
        add_product(module, algorithm.matrices),
        add_result_transform(module, algorithm, bias=bias, residual=residual),
    )
    blocks = _add_blocks(module, f"{name}_blocks", algorithm, steps)
    source, product, result = (
        _add_step(module, f"{step}_of_all", step, run)
        for step, run in zip(steps, (_transform_source, _multiply, _transform_result), strict=True)
    )
    function = module.function(name, (POINTER,) * 2, internal=True)
    arguments, address = function.parameters
    data = _data(function, arguments, {_BIAS: bias, _RESIDUAL: residual})
    function.store(address, function.slot(data, _TABLE))
    table = Table(function, address)
    threads, tiles = table.word(Word.THREADS, i32), table.word(Word.TILES)
    panels = scaled(function, table.word(Word.PANELS), algorithm.matrices)

    def run(body: str, total: SSAValue) -> None:
        function.parallel_for(body, data, total, threads)

    def run_one_block() -> None:
        run(source, tiles)
        run(product, panels)
        run(result, tiles)

    count, one = table.word(Word.BLOCKS), function.integer(1)
    function.when(function.compare("eq", count, one), run_one_block)
    function.when(function.compare("ne", count, one), lambda: run(blocks, count))
    function.finish(function.integer(0, i32))
    return name


def _data(function: FunctionBuilder, arguments: SSAValue, optional: dict[int, bool]) -> SSAValue:
    """What the threads are given; null stands for memory that there is not."""
    data = function.stack_slots(_DATA_SLOTS)
    for slot in optional:
        function.store(function.null(), function.slot(data, slot))
    given = (slot for slot, is_given in optional.items() if is_given)
    read_addresses(function, arguments, data, (_MATRICES, _WEIGHTS, _SOURCE, _RESULT, *given))
    return data


@dataclass(frozen=True)
class _Block:
    """Tiles that are handled together, in the code of a thread."""

    function: FunctionBuilder
    data: SSAValue
    sources: SSAValue
    results: SSAValue
    """Its matrices."""
    first: SSAValue
    tiles: SSAValue
    """Its first tile and how many there are."""

    @staticmethod
    def of(
        function: FunctionBuilder,
        data: SSAValue,
        place: SSAValue,
        first: SSAValue,
        tiles: SSAValue,
    ) -> _Block:
        """The block whose matrices have a place in their memory."""
        table = Table(function, function.pointer(data, _TABLE))
        offset = function.binary(llvm.MulOp, place, table.word(Word.BLOCK))
        sources = element(function, function.pointer(data, _MATRICES), offset)
        results = element(function, sources, table.word(Word.RESULTS))
        return _Block(function, data, sources, results, first, tiles)

    @property
    def table(self) -> SSAValue:
        """The address of the words."""
        return self.pointer(_TABLE)

    def pointer(self, slot: int) -> SSAValue:
        """What stands in a slot of the data."""
        return self.function.pointer(self.data, slot)


Step = Callable[[_Block, str, SSAValue, SSAValue], None]
"""Writes the call of a function for a part of a block."""


def _transform_source(block: _Block, name: str, begin: SSAValue, end: SSAValue) -> None:
    source = block.pointer(_SOURCE)
    block.function.do(name, block.table, source, block.sources, block.first, begin, end)


def _multiply(block: _Block, name: str, begin: SSAValue, end: SSAValue) -> None:
    operands = (block.sources, block.pointer(_WEIGHTS), block.results)
    block.function.do(name, block.table, *operands, block.tiles, begin, end)


def _transform_result(block: _Block, name: str, begin: SSAValue, end: SSAValue) -> None:
    images = (block.pointer(_RESULT), block.results)
    added = (block.pointer(_BIAS), block.pointer(_RESIDUAL))
    block.function.do(name, block.table, *images, block.first, begin, end, *added)


def _add_blocks(
    module: ModuleBuilder, name: str, algorithm: Algorithm, steps: tuple[str, str, str]
) -> str:
    """`void (data, begin, end)`: some blocks, by the thread that is called."""
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    data, begin, end = function.parameters
    table = Table(function, function.pointer(data, _TABLE))
    thread = function.widened(function.call("omp_get_thread_num"))
    tiles, count = table.word(Word.TILES), table.word(Word.BLOCKS)
    panels = scaled(function, table.word(Word.PANELS), algorithm.matrices)
    zero = function.integer(0)
    source, product, result = steps

    def block(index: SSAValue) -> None:
        number = function.binary(llvm.AddOp, begin, index)
        first, last = share(function, tiles, number, count)
        some = function.binary(llvm.SubOp, last, first)
        one = _Block.of(function, data, thread, first, some)
        _transform_source(one, source, zero, some)
        _multiply(one, product, zero, panels)
        _transform_result(one, result, zero, some)

    function.loop(function.binary(llvm.SubOp, end, begin), block)
    function.finish()
    return name


def _add_step(module: ModuleBuilder, name: str, step: str, run: Step) -> str:
    """`void (data, begin, end)`: a part of one step, where all tiles are one block."""
    if module.has(name):
        return name
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    data, begin, end = function.parameters
    zero, table = function.integer(0), Table(function, function.pointer(data, _TABLE))
    run(_Block.of(function, data, zero, zero, table.word(Word.TILES)), step, begin, end)
    function.finish()
    return name
