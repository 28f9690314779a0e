"""One convolution by Winograd's algorithm, on all threads; see `winograd.py`."""

from __future__ import annotations

from functools import partial

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from byoc_mlir.backends.dnnl.codegen.llvm_builder import (
    POINTER,
    VOID,
    FunctionBuilder,
    ModuleBuilder,
)
from byoc_mlir.backends.dnnl.codegen.winograd_product import add_product
from byoc_mlir.backends.dnnl.codegen.winograd_table import Table, Word
from byoc_mlir.backends.dnnl.codegen.winograd_tiles import (
    add_result_transform,
    add_source_transform,
)
from byoc_mlir.backends.dnnl.codegen.winograd_vectors import (
    element,
    scaled,
    share,
    thread_and_team,
)
from byoc_mlir.backends.dnnl.winograd import Algorithm

_PREFIX = "byoc_dnnl_winograd"
_PAIR_SLOTS = 2

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
    thread = _add_thread(module, name, algorithm, bias=bias, residual=residual)
    function = module.function(name, (POINTER,) * 2, internal=True)
    pairs, table = function.parameters
    data = function.stack_slots(_DATA_SLOTS)
    others = [slot for slot, has in ((_BIAS, bias), (_RESIDUAL, residual)) if has]
    for number, slot in enumerate((_MATRICES, _WEIGHTS, _SOURCE, _RESULT, *others)):
        memory = function.pointer(pairs, _PAIR_SLOTS * number + 1)
        handle = function.slot(data, slot)
        function.check(function.call("dnnl_memory_get_data_handle", memory, handle))
    function.store(table, function.slot(data, _TABLE))
    threads = function.word(table, Word.THREADS, i32)
    no_flags = function.integer(0, i32)
    function.do("GOMP_parallel", function.address(thread), data, threads, no_flags)
    function.finish(no_flags)
    return name


def _add_thread(
    module: ModuleBuilder, name: str, algorithm: Algorithm, *, bias: bool, residual: bool
) -> str:
    """`void (data)`: what one thread does."""
    source = add_source_transform(module, algorithm)
    product = add_product(module, algorithm.matrices)
    result = add_result_transform(module, algorithm, bias=bias, residual=residual)
    name = f"{name}_thread"
    function = module.function(name, (POINTER,), result=VOID, internal=True)
    (data,) = function.parameters
    pointer = partial(function.pointer, data)
    table = Table(function, pointer(_TABLE))
    biases = pointer(_BIAS) if bias else function.null()
    residuals = pointer(_RESIDUAL) if residual else function.null()
    zero, one = function.integer(0), function.integer(1)
    thread, team = thread_and_team(function)
    is_shared = function.compare("eq", table.word(Word.OWN), zero)
    member = function.select(is_shared, thread, zero)
    members = function.select(is_shared, team, one)
    turn = function.select(is_shared, zero, thread)
    turns = function.select(is_shared, one, team)
    begin, end = share(function, table.word(Word.TILES), turn, turns)
    begins = element(
        function,
        pointer(_MATRICES),
        function.binary(llvm.MulOp, turn, table.word(Word.BLOCK)),
    )
    results = element(function, begins, table.word(Word.RESULTS))
    count = function.binary(llvm.SubOp, end, begin)
    blocks = _quotient_up(function, count, table.word(Word.BLOCK_TILES))

    def wait() -> None:
        function.when(is_shared, partial(function.do, "GOMP_barrier"))

    def block(index: SSAValue) -> None:
        low, high = share(function, count, index, blocks)
        first = function.binary(llvm.AddOp, begin, low)
        tiles = function.binary(llvm.SubOp, high, low)
        some = share(function, tiles, member, members)
        function.do(source, table.address, pointer(_SOURCE), begins, first, *some)
        wait()
        weights = pointer(_WEIGHTS)
        function.do(product, table.address, begins, weights, results, tiles, member, members)
        wait()
        images = (table.address, pointer(_RESULT), results)
        function.do(result, *images, first, *some, biases, residuals)

    function.loop(blocks, block)
    function.finish()
    return name


def _quotient_up(function: FunctionBuilder, value: SSAValue, by: SSAValue) -> SSAValue:
    before = scaled(function, function.binary(llvm.AddOp, value, by), 1, -1)
    return function.binary(llvm.SDivOp, before, by)
