"""The pass `outline-parallel`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.abi import MAY_ALIAS, PREFER_NO_GATHER
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.threads import FEWEST
from byoc_mlir.lowering.to_llvm.aliasing import aliased
from byoc_mlir.lowering.to_llvm.index_math import Bound, IndexMath, bound
from byoc_mlir.lowering.to_llvm.openmp import call_in_parallel

_INDEX = IndexType()
_REMATERIALISED = (arith.ConstantOp, memref.GetGlobalOp)
"""Ops that are cheaper to repeat than to pass as a value, and tell LLVM more."""


@dataclass(frozen=True)
class OutlineParallel(ModulePass):
    """Moves the body of each `scf.parallel` to a function that runs a chunk of the iterations.

    The iteration space is linearised in row-major order; a chunk is a range of it. With `threads`,
    all threads of a libgomp team claim chunks and call the function, see `kernels/parallel.py`.
    Without `threads`, the function is called once for the whole range. Parallel loops inside of a
    parallel loop become `scf.for`. Memrefs are passed as arguments, so LLVM knows which of them
    cannot alias.

    ```mlir
    func.func @f(%x: memref<64x8xf32>) {
      scf.parallel (%i, %j) = (%c0, %c0) to (%c64, %c8) step (%c1, %c1) { ... }
    }
    ```
    becomes, with `threads=false`,
    ```mlir
    func.func @f(%x: memref<64x8xf32>) {
      func.call @f_parallel_0(%c0, %c512, %x) : (index, index, memref<64x8xf32>) -> ()
    }
    func.func private @f_parallel_0(%begin: index, %end: index, %x: memref<64x8xf32>) {
      %first = arith.divui %begin, %c8 : index
      %last = arith.divui (%end + 7), %c8 : index
      scf.for %i = %first to %last step %c1 {
        %lower = arith.maxsi (%begin - %i * 8), %c0 : index
        %upper = arith.minsi (%end - %i * 8), %c8 : index
        scf.for %j = %lower to %upper step %c1 { ... }
      }
    }
    ```
    and with threads `llvm.call @byoc_parallel_for(@f_parallel_0_chunk, %captured, 512, 0)`. A loop
    with `host.fewest_iterations` makes this call if it has as many iterations, else the sequential
    one, of a function that is not inlined.
    """

    name = "outline-parallel"

    threads: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        calls_runtime = False
        for function in in_time(op.body.block.ops):
            if not isinstance(function, func.FuncOp):
                continue
            for number, loop in enumerate(tuple(_outermost(function.body))):
                name = f"{function.sym_name.data}_parallel_{number}"
                calls_runtime |= _outline(loop, function, name, self.threads)
        if calls_runtime:
            ModuleBuilder(op).define_parallel_for()


def _outermost(region: Region) -> Iterator[scf.ParallelOp]:
    for block in region.blocks:
        for op in block.ops:
            if isinstance(op, scf.ParallelOp):
                yield op
                continue
            for inner in op.regions:
                yield from _outermost(inner)


def _outline(loop: scf.ParallelOp, parent: func.FuncOp, name: str, threads: bool) -> bool:
    """Replaces a parallel loop by calls; returns True if it needs the OpenMP runtime."""
    for nested in tuple(loop.body.walk(reverse=True)):
        if isinstance(nested, scf.ParallelOp):
            _serialise(nested)
    _require_no_results(loop)
    captured = _captured(loop)
    builder = Builder(InsertPoint.before(loop))
    math = IndexMath(builder)
    total: Bound = reduce(math.multiply, _Space.of(loop).sizes(math), 1)
    if total == 0:
        _erase(loop)
        return False
    body = _body_function(loop, name, captured)
    if PREFER_NO_GATHER in parent.attributes:
        body.attributes[PREFER_NO_GATHER] = UnitAttr()
    parent_block = parent.parent_block()
    assert parent_block is not None
    parent_block.insert_op_after(body, parent)
    is_shared = threads and total != 1
    fewest = loop.attributes.get(FEWEST)
    if is_shared and isinstance(total, SSAValue) and isinstance(fewest, IntegerAttr):
        then, other = _where_enough(builder, total, fewest)
        call_in_parallel(then, body, total, captured, parent)
        then.insert(scf.YieldOp())
        _call(other, body, total, captured)
        other.insert(scf.YieldOp())
        body.attributes["no_inline"] = UnitAttr()  # LLVM would compile it for both callers
    elif is_shared:
        call_in_parallel(builder, body, total, captured, parent)
    else:
        _call(builder, body, total, captured)
    _erase(loop)
    return is_shared


def _call(builder: Builder, body: func.FuncOp, total: Bound, captured: Sequence[SSAValue]) -> None:
    """Calls the body's function for all iterations, on one thread or on several."""
    math = IndexMath(builder)
    arguments = [math.value(0), math.value(total), *captured]
    builder.insert(func.CallOp(body.sym_name.data, arguments, []))


def _where_enough(
    builder: Builder, total: SSAValue, fewest: IntegerAttr
) -> tuple[Builder, Builder]:
    """Emits `if total >= fewest`; returns the builders of both branches."""
    then, other = Block(), Block()
    least = builder.insert(arith.ConstantOp(fewest)).result
    is_enough = builder.insert(arith.CmpiOp(total, least, "uge")).result
    builder.insert(scf.IfOp(is_enough, [], Region(then), Region(other)))
    return _at_end(then), _at_end(other)


def _require_no_results(loop: scf.ParallelOp) -> None:
    if loop.initVals:
        raise PassFailedException(
            f"scf.parallel at {loop.location} reduces {len(loop.initVals)} value(s); reductions "
            "are not supported, write partial results to memory"
        )


@dataclass(frozen=True)
class _Space:
    """Bounds of a loop nest."""

    lower: Sequence[Bound]
    upper: Sequence[Bound]
    step: Sequence[Bound]

    @staticmethod
    def of(loop: scf.ParallelOp, moved: Mapping[SSAValue, SSAValue] | None = None) -> _Space:
        """Returns the bounds of `loop`, with its operands replaced by the values in `moved`."""

        def bounds(values: Sequence[SSAValue]) -> list[Bound]:
            return [bound((moved or {}).get(value, value)) for value in values]

        return _Space(bounds(loop.lowerBound), bounds(loop.upperBound), bounds(loop.step))

    def sizes(self, math: IndexMath) -> list[Bound]:
        """Emits the trip count of each dimension."""
        return [
            math.trip_count(lower, upper, step)
            for lower, upper, step in zip(self.lower, self.upper, self.step, strict=True)
        ]

    def coordinate(self, math: IndexMath, dimension: int, position: Bound) -> SSAValue:
        """Emits the value of a dimension's induction variable in iteration number `position`."""
        scaled = math.multiply(position, self.step[dimension])
        return math.value(math.add(self.lower[dimension], scaled))


def _captured(loop: scf.ParallelOp) -> list[SSAValue]:
    """Returns the values from outside that the loop uses, in order of first use."""
    inside: set[SSAValue] = set(loop.body.block.args)
    found = dict.fromkeys(value for value in loop.operands if not _is_rematerialised(value))
    for op in loop.body.walk():
        inside.update(op.results)
        for region in op.regions:
            inside.update(arg for block in region.blocks for arg in block.args)
        outside = (value for value in op.operands if value not in inside)
        found.update(dict.fromkeys(value for value in outside if not _is_rematerialised(value)))
    return list(found)


def _is_rematerialised(value: SSAValue) -> bool:
    return isinstance(value.owner, _REMATERIALISED)


def _body_function(loop: scf.ParallelOp, name: str, captured: Sequence[SSAValue]) -> func.FuncOp:
    """Returns a function of the iterations `[%begin, %end)`; moves the loop's body into it."""
    block = Block(arg_types=[_INDEX, _INDEX, *(value.type for value in captured)])
    begin, end, *args = block.args
    begin.name_hint, end.name_hint = "begin", "end"
    for value, arg in zip(captured, args, strict=True):
        arg.name_hint = value.name_hint
    builder = Builder(InsertPoint.at_end(block))
    moved: dict[SSAValue, SSAValue] = dict(zip(captured, args, strict=True))
    _redirect_operands(loop, moved, builder)
    space = _Space.of(loop, moved)
    innermost, coordinates = _loop_nest(builder, space, begin, end)
    _move_body(loop, innermost, coordinates)
    builder.insert(func.ReturnOp())
    function = func.FuncOp(
        name,
        ([arg.type for arg in block.args], []),
        Region(block),
        visibility="private",
        arg_attrs=_argument_attributes(captured),
    )
    function.location = loop.location
    return function


def _argument_attributes(captured: Sequence[SSAValue]) -> ArrayAttr[DictionaryAttr]:
    memrefs = [value for value in captured if isinstance(value.type, MemRefType)]
    shared = dict(zip(memrefs, aliased(memrefs), strict=True))
    attributes = [
        DictionaryAttr({MAY_ALIAS: UnitAttr()} if shared.get(value) else {}) for value in captured
    ]
    none = DictionaryAttr({})
    return ArrayAttr([none, none, *attributes])


def _redirect_operands(
    loop: scf.ParallelOp, moved: dict[SSAValue, SSAValue], builder: Builder
) -> None:
    """Replaces operands in the loop's body as `moved` maps them; clones ops that are not passed as
    arguments.
    """
    inside = {loop, *loop.body.walk()}
    for op in loop.body.walk():
        for value in op.operands:
            if value in moved or not _is_rematerialised(value) or value.owner in inside:
                continue
            assert isinstance(value.owner, Operation)
            moved[value] = builder.insert(value.owner.clone()).results[0]
        if any(value in moved for value in op.operands):
            op.operands = [moved.get(value, value) for value in op.operands]


def _loop_nest(
    builder: Builder, space: _Space, begin: SSAValue, end: SSAValue
) -> tuple[Block, Sequence[SSAValue]]:
    """Emits loops over the positions `[begin, end)`; returns the innermost block, and the
    coordinates in it.

    The last dimension has its own loop, so that it needs no division and LLVM vectorises it; the
    other dimensions share one loop.
    """
    math = IndexMath(builder)
    *outer_sizes, inner_size = space.sizes(math)
    if not outer_sizes:
        block, position = _for(builder, begin, end)
        return block, [space.coordinate(IndexMath(_at_end(block)), 0, position)]
    inner_size = math.maximum(inner_size, 1)
    first = math.divide(begin, inner_size)
    last = math.ceil_divide(end, inner_size)
    outer_block, row = _for(builder, math.value(first), math.value(last))
    outer_builder = _at_end(outer_block)
    outer_math = IndexMath(outer_builder)
    coordinates = _delinearised(outer_math, space, outer_sizes, row)
    row_start = outer_math.multiply(row, inner_size)
    lower = outer_math.maximum(outer_math.subtract(begin, row_start), 0)
    upper = outer_math.minimum(outer_math.subtract(end, row_start), inner_size)
    lower_value, upper_value = outer_math.value(lower), outer_math.value(upper)
    inner_block, position = _for(outer_builder, lower_value, upper_value)
    outer_builder.insert(scf.YieldOp())
    inner_math = IndexMath(_at_end(inner_block))
    last_dimension = len(outer_sizes)
    return inner_block, [*coordinates, space.coordinate(inner_math, last_dimension, position)]


def _for(builder: Builder, lower: SSAValue, upper: SSAValue) -> tuple[Block, SSAValue]:
    one = IndexMath(builder).value(1)
    block = Block(arg_types=[_INDEX])
    builder.insert(scf.ForOp(lower, upper, one, [], Region(block)))
    return block, block.args[0]


def _at_end(block: Block) -> Builder:
    return Builder(InsertPoint.at_end(block))


def _delinearised(
    math: IndexMath, space: _Space, sizes: Sequence[Bound], position: Bound
) -> list[SSAValue]:
    coordinates: list[SSAValue] = []
    for dimension in reversed(range(len(sizes))):
        is_first = dimension == 0
        index = position if is_first else math.remainder(position, sizes[dimension])
        coordinates.append(space.coordinate(math, dimension, index))
        if not is_first:
            position = math.divide(position, sizes[dimension])
    return coordinates[::-1]


def _move_body(loop: scf.ParallelOp, target: Block, coordinates: Sequence[SSAValue]) -> None:
    body = loop.body.block
    for old, new in zip(body.args, coordinates, strict=True):
        old.replace_all_uses_with(new)
        new.name_hint = old.name_hint
    *ops, _reduce = body.ops
    for op in ops:
        op.detach()
        target.add_op(op)
    target.add_op(scf.YieldOp())


def _serialise(loop: scf.ParallelOp) -> None:
    """Turns a parallel loop into nested `scf.for`."""
    _require_no_results(loop)
    builder = Builder(InsertPoint.before(loop))
    block = loop.body.block
    coordinates: list[SSAValue] = []
    for lower, upper, step in zip(loop.lowerBound, loop.upperBound, loop.step, strict=True):
        block = Block(arg_types=[_INDEX])
        builder.insert(scf.ForOp(lower, upper, step, [], Region(block)))
        coordinates.append(block.args[0])
        if len(coordinates) < len(loop.step):
            block.add_op(scf.YieldOp())
        builder = Builder(InsertPoint.at_start(block))
    _move_body(loop, block, coordinates)
    _erase(loop)


def _erase(loop: scf.ParallelOp) -> None:
    loop.detach()
    loop.erase()
