"""The pass `map-to-grid`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, func, llvm, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    UnitAttr,
    f32,
    i32,
    i64,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import KERNEL, MAY_ALIAS
from byoc_mlir.backends.cuda.kernels.groups import WARP, Fold, Group, RowNest, fold_of, group_of
from byoc_mlir.dialects.dynamic_buffers import View
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.code import INDEX, Index, LoopWriter, Position
from byoc_mlir.lowering.linalg_to_loops.nest import Nest
from byoc_mlir.lowering.linalg_to_loops.simple import (
    emit_element,
    emit_folds,
    emit_step,
    enter,
    load_results,
    store_results,
)
from byoc_mlir.lowering.threads import INDEPENDENT

THREADS = "cuda.threads"
"""Attribute of a kernel: its number of threads."""

BLOCK_THREADS = 256
"""Number of threads of a block, a multiple of a warp."""

_MOST_THREADS = 2**32 - 1
"""Maximum number of threads, which are numbered in 32 bits."""

_EVERY_LANE = -1
"""Mask of all threads of a warp."""

_WITHOUT_EFFECT = (arith.ConstantOp, memref.ReinterpretCastOp)


class MapToGrid(ModulePass):
    """Mapping of the iterations of kernels to the threads of a GPU.

    Functions of kernels (`byoc.kernel`) hold `linalg` ops of one group, or loops. Each row of a
    group becomes a thread, or the threads of a warp, which combines its partial sums by shuffles;
    so does each iteration of a nest of independent loops. One thread runs loops that depend on each
    other. `cuda.threads` is the number of threads.

    ```mlir
    func.func private @relu_0(%x: memref<64xf32>, %y: memref<64xf32>) attributes {byoc.kernel = …} {
      linalg.generic … ins(%x) outs(%y) { … }
    }
    // becomes
    func.func private @relu_0(…) attributes {byoc.kernel = …, cuda.threads = 64 : i64} {
      %thread = …                                    // block * 256 + thread in the block
      %is_row = arith.cmpi ult, %thread, %c64 : index
      scf.if %is_row {
        %0 = memref.load %x[%thread] : memref<64xf32>
        …
      }
    }
    ```
    """

    name = "map-to-grid"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in in_time(op.ops):
            if isinstance(function, func.FuncOp) and KERNEL in function.attributes:
                threads = _map(function)
                if threads > _MOST_THREADS:
                    raise PassFailedException(
                        f"kernel '{function.sym_name.data}' has {threads} threads; a GPU runs at"
                        f" most {_MOST_THREADS}"
                    )
                function.attributes[THREADS] = IntegerAttr(threads, i64)


def _map(function: func.FuncOp) -> int:
    """Maps the code of a kernel to threads; returns their number."""
    block = function.body.block
    generics = [op for op in block.ops if isinstance(op, linalg.GenericOp)]
    if not generics:
        return _map_loops(block)
    group = group_of(generics)
    if len(group.nests) != len(generics):
        raise PassFailedException(
            f"the ops of kernel '{function.sym_name.data}' are no group of rows"
        )
    if group.threads:
        _emit_group(LoopWriter(block, generics[0]), group)
    if group.lanes > 1:
        _mark_shared(function, group)
    for op in reversed(generics):
        block.erase_op(op)
    for view in reversed([op for op in block.ops if isinstance(op, View)]):
        if not view.results[0].first_use:
            block.erase_op(view)
    return group.threads


def _mark_shared(function: func.FuncOp, group: Group) -> None:
    """Marks the buffers through which the lanes of a warp exchange values.

    LLVM would move accesses to buffers without aliases across barriers.
    """
    written = {access.buffer for nest in group.nests for access in nest.nest.results}
    function.arg_attrs = ArrayAttr(
        DictionaryAttr({MAY_ALIAS: UnitAttr()} if argument in written else {})
        for argument in function.args
    )


def _emit_group(code: LoopWriter, group: Group) -> None:
    thread = _thread_index(code)
    if group.lanes == 1:
        with code.only_if(_is_below(code, thread, group.rows)):
            for nest in group.nests:
                _emit_row(code, nest, _at_row(code, nest, thread))
        return
    row, lane = _value(code.quotient(thread, WARP)), _value(code.remainder(thread, WARP))
    with code.only_if(_is_below(code, row, group.rows)):
        for nest in group.nests:
            _emit_row_of_warp(code, nest, _at_row(code, nest, row), lane)
            code.add(_intrinsic("bar.warp.sync", [_i32(code, _EVERY_LANE)], ()))


def _is_below(code: LoopWriter, number: SSAValue, limit: int) -> SSAValue:
    return code.emit(arith.CmpiOp(number, code.index(limit), "ult"))


def _thread_index(code: LoopWriter) -> SSAValue:
    """Emits the number of the thread in the grid."""
    thread, block = (
        code.emit(_intrinsic(f"read.ptx.sreg.{register}.x", [], [i32]))
        for register in ("tid", "ctaid")
    )
    first = code.emit(arith.MuliOp(block, _i32(code, BLOCK_THREADS)))
    number = code.emit(arith.ExtUIOp(code.emit(arith.AddiOp(first, thread)), i64))
    return code.emit(arith.IndexCastOp(number, INDEX))


def _intrinsic(
    name: str, operands: Sequence[SSAValue], results: Sequence[Attribute]
) -> llvm.CallIntrinsicOp:
    return llvm.CallIntrinsicOp(f"llvm.nvvm.{name}", list(operands), list(results))


def _i32(code: LoopWriter, value: int) -> SSAValue:
    return code.emit(arith.ConstantOp(IntegerAttr(value, i32)))


def _value(index: Index) -> SSAValue:
    assert isinstance(index, SSAValue)
    return index


def _at_row(code: LoopWriter, nest: RowNest, row: SSAValue) -> Position:
    """Emits the position of a row: the counters of the leading loops."""
    at, rest = Position.start(nest.nest), row
    for loop in reversed(nest.over_rows):
        size = nest.nest.sizes[loop]
        assert isinstance(size, int)
        is_first = loop == nest.over_rows[0]
        counter = rest if is_first else code.remainder(rest, size)
        at = at.entered(code, nest.nest, loop, counter)
        rest = rest if is_first else _value(code.quotient(rest, size))
    return at


def _emit_row(code: LoopWriter, nest: RowNest, at: Position) -> None:
    """Emits a row of one result, which one thread computes."""
    if nest.nest.reductions:
        emit_folds(code, nest.nest, [at])
    else:
        emit_element(code, nest.nest, at)


def _emit_row_of_warp(code: LoopWriter, nest: RowNest, at: Position, lane: SSAValue) -> None:
    """Emits a row that a warp computes: the lanes share its elements, or its reduction steps."""
    fold = fold_of(nest.nest.body)
    if nest.nest.reductions:
        assert fold is not None
        _emit_fold_of_warp(code, nest.nest, fold, at, lane)
        return
    if not nest.inner:
        with code.loop(1, start=lane, step=WARP):  # the first lane
            emit_element(code, nest.nest, at)
        return
    *outer, last = nest.inner

    def elements(here: Position) -> None:
        with code.loop(nest.nest.sizes[last], start=lane, step=WARP) as loop:
            emit_element(code, nest.nest, here.entered(code, nest.nest, last, loop.counter))

    enter(code, nest.nest, outer, at, elements)


def _emit_fold_of_warp(
    code: LoopWriter, nest: Nest, fold: Fold, at: Position, lane: SSAValue
) -> None:
    """Emits a reduction: each lane folds every 32nd element, then the lanes combine their values.

    The first lane adds the result's old value, and stores the result.
    """
    *outer, last = sorted(nest.reductions)
    neutral = code.emit(arith.ConstantOp(FloatAttr(fold.neutral, f32)))

    def folded(
        here: Position, loops: Sequence[int], running: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        if not loops:
            with code.loop(nest.sizes[last], running, start=lane, step=WARP) as loop:
                inner = here.entered(code, nest, last, loop.counter)
                loop.carry(emit_step(code, nest, inner, loop.carried))
            return loop.results
        with code.loop(nest.sizes[loops[0]], running) as loop:
            inner = here.entered(code, nest, loops[0], loop.counter)
            loop.carry(folded(inner, loops[1:], loop.carried))
        return loop.results

    (total,) = folded(at, outer, [neutral])
    for distance in (16, 8, 4, 2, 1):
        total = _combined(code, fold, total, _shuffled(code, total, distance))
    with code.loop(1, start=lane, step=WARP):
        (before,) = load_results(code, nest, at)
        store_results(code, nest, at, [_combined(code, fold, before, total)])


def _shuffled(code: LoopWriter, value: SSAValue, distance: int) -> SSAValue:
    """Emits the value of the lane whose number differs in one bit."""
    numbers = [_i32(code, number) for number in (_EVERY_LANE, distance, WARP - 1)]
    mask, bit, last = numbers
    return code.emit(_intrinsic("shfl.sync.bfly.f32", [mask, value, bit, last], [f32]))


def _combined(code: LoopWriter, fold: Fold, one: SSAValue, other: SSAValue) -> SSAValue:
    return code.emit(
        type(fold.op).create(
            operands=[one, other], result_types=[f32], properties=fold.op.properties
        )
    )


def _map_loops(block: Block) -> int:
    """Maps the nest of independent loops of a kernel to threads; returns their number.

    One thread runs a kernel that is no such nest.
    """
    ops = [op for op in block.ops if not isinstance(op, func.ReturnOp)]
    effects = [op for op in ops if not _is_repeatable(op)]
    is_nest = len(effects) == 1 and _is_independent(effects[0])
    nest = _nested(effects[0]) if is_nest else []
    sizes = [size for level in nest for size in _sizes(level)]
    threads = math.prod(sizes)
    if not threads:
        block.erase_op(effects[0])
        return threads
    end = block.last_op
    assert end is not None
    code = LoopWriter(block, end)
    thread = _thread_index(code)
    with code.only_if(_is_below(code, thread, threads)):
        if is_nest:
            _inline(code, nest, sizes, thread)
        else:
            _move(code, ops)
    if is_nest:
        block.erase_op(effects[0])
    return threads


def _is_independent(op: Operation) -> bool:
    return isinstance(op, scf.ParallelOp) or (
        isinstance(op, scf.ForOp) and INDEPENDENT in op.attributes
    )


def _nested(loop: Operation) -> Sequence[Operation]:
    """Returns a loop and the loops that make up its body, except ops without effects."""
    effects = [op for op in loop.regions[0].block.ops if not _is_repeatable(op)]
    if len(effects) == 1 and _is_independent(effects[0]):
        return [loop, *_nested(effects[0])]
    return [loop]


def _is_repeatable(op: Operation) -> bool:
    """True if an op may run once for each iteration of a loop after it."""
    return isinstance(
        op, (*_WITHOUT_EFFECT, memref.LoadOp, scf.YieldOp, scf.ReduceOp)
    ) or op.name.startswith("arith.")


def _sizes(loop: Operation) -> Sequence[int]:
    """Returns the trip counts of an independent loop, which counts from 0 by 1."""
    count = len(loop.operands) // 3
    return list(map(number_of, loop.operands[count : 2 * count]))


def number_of(value: SSAValue) -> int:
    """Returns the value of a constant.

    Raises:
        PassFailedException: it is computed.
    """
    owner = value.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, IntegerAttr):
        raise PassFailedException("a size or an offset is not known when the kernel is generated")
    return owner.value.value.data


def _inline(
    code: LoopWriter, nest: Sequence[Operation], sizes: Sequence[int], thread: SSAValue
) -> None:
    """Moves the bodies of nested loops to the current position, with the thread's counters."""
    counters: list[SSAValue] = []
    rest = thread
    for size in reversed(sizes[1:]):
        counters.append(code.emit(arith.RemUIOp(rest, code.index(size))))
        rest = code.emit(arith.DivUIOp(rest, code.index(size)))
    numbers = iter([rest, *reversed(counters)])
    for level, inner in zip(nest, [*nest[1:], None], strict=True):
        body = level.regions[0].block
        for argument in body.args:
            argument.replace_all_uses_with(next(numbers))
        for op in list(body.ops):
            if op is not inner and not isinstance(op, scf.YieldOp | scf.ReduceOp):
                _move(code, [op])


def _move(code: LoopWriter, ops: Sequence[Operation]) -> None:
    for op in ops:
        op.detach()
        code.add(op)
