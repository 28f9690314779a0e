"""Loop nests over flat buffers, derived from `linalg.generic` ops on memrefs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.dynamic_buffers import View, buffer_offset, buffer_sizes, buffer_strides
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size


@dataclass(frozen=True)
class Access:
    """Access to an operand: element `offset + sum(iteration * coefficient)` of a buffer."""

    buffer: SSAValue
    offset: Size
    coefficients: tuple[Size, ...]
    panel_columns: int = 0
    """Columns of a panel, if a matrix is stored in panels; then coefficients are valid within a
    panel."""

    @property
    def element_type(self) -> Attribute:
        """Returns the element type."""
        assert isinstance(self.buffer.type, MemRefType)
        return self.buffer.type.element_type


@dataclass(frozen=True)
class Nest:
    """Loop nest of `sizes`; each iteration runs `body` on the elements of `accesses`.

    The last `outputs` accesses are results; the loops in `reductions` reduce into them.
    """

    sizes: tuple[Size, ...]
    reductions: frozenset[int]
    accesses: tuple[Access, ...]
    outputs: int
    body: Block

    @property
    def inputs(self) -> tuple[Access, ...]:
        """Returns the accesses that are only read."""
        return self.accesses[: len(self.accesses) - self.outputs]

    @property
    def results(self) -> tuple[Access, ...]:
        """Returns the accesses that are written."""
        return self.accesses[len(self.accesses) - self.outputs :]

    @property
    def parallel(self) -> tuple[int, ...]:
        """Returns the loops with independent iterations, outermost first."""
        return tuple(loop for loop in range(len(self.sizes)) if loop not in self.reductions)

    @property
    def iterations(self) -> Size:
        """Returns the number of iterations of the body."""
        return math.prod(self.sizes)

    @property
    def reads_results(self) -> bool:
        """True if the body uses the outputs' previous values."""
        return any(arg.first_use for arg in self.body.args[len(self.inputs) :])

    @property
    def uses_position(self) -> bool:
        """True if the body uses the position in the nest."""
        return any(isinstance(op, linalg.IndexOp) for op in self.body.ops)


def split_loop(nest: Nest, loop: int, size: int) -> Nest:
    """Splits `loop` into two; the inner one has `size` iterations."""
    assert nest.sizes[loop] % size == 0
    assert not nest.uses_position

    def split(access: Access) -> Access:
        before, (own, *after) = access.coefficients[:loop], access.coefficients[loop:]
        return replace(access, coefficients=(*before, own * size, own, *after))

    return replace(
        nest,
        sizes=(*nest.sizes[:loop], nest.sizes[loop] // size, size, *nest.sizes[loop + 1 :]),
        reductions=frozenset(n + 1 if n > loop else n for n in nest.reductions),
        accesses=tuple(split(access) for access in nest.accesses),
    )


def section(nest: Nest, loop: int, start: Size, size: Size) -> Nest:
    """Returns the nest with `size` iterations of `loop`, from iteration `start` on."""
    assert not nest.uses_position

    def moved(access: Access) -> Access:
        return replace(access, offset=access.offset + start * access.coefficients[loop])

    return replace(
        nest,
        sizes=(*nest.sizes[:loop], size, *nest.sizes[loop + 1 :]),
        accesses=tuple(map(moved, nest.accesses)),
    )


def nest_of(op: linalg.GenericOp) -> Nest:
    """Returns the simplified loop nest of an op.

    It has no loops of one iteration. Loops that traverse memory like a single loop are merged.
    """
    nest = plain_nest(op)
    return nest if nest.uses_position else coalesced(_along_memory(without_unit_loops(nest)))


def plain_nest(op: linalg.GenericOp) -> Nest:
    """Returns the loop nest of an op, with its loops unchanged.

    Raises:
        PassFailedException: no operand has a loop's dimension, so the loop's size is unknown.
    """
    maps = [attribute.data for attribute in op.indexing_maps]
    rank = maps[0].num_dims
    sizes: list[Size] = [-1] * rank
    for operand, map_ in zip(op.operands, maps, strict=True):
        assert isinstance(operand.type, MemRefType)
        for size, expr in zip(buffer_sizes(operand.type), map_.results, strict=True):
            if isinstance(expr, AffineDimExpr):
                sizes[expr.position] = size
    if -1 in sizes:
        raise PassFailedException(
            f"no operand determines the size of loop {sizes.index(-1)}: {maps}"
        )
    return Nest(
        tuple(sizes),
        frozenset(
            loop
            for loop, kind in enumerate(op.iterator_types)
            if kind.data is IteratorType.REDUCTION
        ),
        tuple(
            _access(operand, map_.results, rank)
            for operand, map_ in zip(op.operands, maps, strict=True)
        ),
        len(op.outputs),
        op.body.block,
    )


def panel_exprs(step: AffineExpr, column: AffineExpr, columns: int) -> tuple[AffineExpr, ...]:
    """Returns the indices of an element (step, column) of a matrix stored in panels of `columns`
    columns.
    """
    return (column // columns, step, column % columns)


def _panel_access(operand: SSAValue, exprs: Sequence[AffineExpr], rank: int) -> Access | None:
    """Returns the access to a matrix stored in panels; None if the indexing map is another one."""
    match exprs:
        case (
            AffineBinaryOpExpr(kind=AffineBinaryOpKind.FloorDiv, rhs=AffineConstantExpr()),
            AffineDimExpr() as step,
            AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=AffineDimExpr() as column),
        ):
            assert isinstance(operand.type, MemRefType)
            columns = operand.type.get_shape()[-1]
            coefficients = [0] * rank
            coefficients[step.position], coefficients[column.position] = columns, 1
            return Access(operand, 0, tuple(coefficients), columns)
        case _:
            return None


def _access(operand: SSAValue, exprs: Sequence[AffineExpr], rank: int) -> Access:
    panels = _panel_access(operand, exprs, rank)
    if panels is not None:
        return panels
    type_ = operand.type
    assert isinstance(type_, MemRefType)
    offset = buffer_offset(type_)
    coefficients: list[Size] = [0] * rank
    for stride, expr in zip(buffer_strides(type_), exprs, strict=True):
        terms, constant = linear(expr, rank)
        offset = offset + stride * constant
        for loop, term in enumerate(terms):
            coefficients[loop] = coefficients[loop] + stride * term
    owner = operand.owner
    buffer = owner.source if isinstance(owner, View) else operand
    return Access(buffer, offset, tuple(coefficients))


def linear(expr: AffineExpr, rank: int) -> tuple[list[int], int]:
    """Returns an affine expression as coefficients of the dimensions and a constant."""
    match expr:
        case AffineConstantExpr():
            return [0] * rank, expr.value
        case AffineDimExpr():
            return [int(position == expr.position) for position in range(rank)], 0
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add):
            (a, b), (c, d) = linear(expr.lhs, rank), linear(expr.rhs, rank)
            return [x + y for x, y in zip(a, c, strict=True)], b + d
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, rhs=AffineConstantExpr()):
            terms, constant = linear(expr.lhs, rank)
            factor = expr.rhs.eval([], [])
            return [term * factor for term in terms], constant * factor
        case _:
            raise PassFailedException(f"indexing expression {expr} is not linear")


def without_unit_loops(nest: Nest) -> Nest:
    """Returns the nest without loops of one iteration."""
    kept = [loop for loop, size in enumerate(nest.sizes) if size != 1]
    return permuted(nest, kept)


def _along_memory(nest: Nest) -> Nest:
    """Reorders the reduction loops so that they traverse the inputs in memory order, as for an NHWC
    image.
    """
    walks = {
        tuple(access.coefficients[n] for n in sorted(nest.reductions)) for access in nest.inputs
    }
    if len(walks) != 1:
        return nest
    strides = dict(zip(sorted(nest.reductions), *walks, strict=True))
    inner_last = iter(sorted(strides, key=lambda loop: -hint(strides[loop])))
    loops = range(len(nest.sizes))
    return permuted(nest, [next(inner_last) if n in nest.reductions else n for n in loops])


def permuted(nest: Nest, order: Sequence[int]) -> Nest:
    """Reorders the loops to `order`; omitted loops must have one iteration."""
    return replace(
        nest,
        sizes=tuple(nest.sizes[loop] for loop in order),
        reductions=frozenset(n for n, loop in enumerate(order) if loop in nest.reductions),
        accesses=tuple(
            replace(access, coefficients=tuple(access.coefficients[loop] for loop in order))
            for access in nest.accesses
        ),
    )


def coalesced(nest: Nest, apart: int = 0) -> Nest:
    """Merges adjacent loops if every access traverses them like a single loop.

    Loop `apart` is not merged with the loops before it.
    """
    groups: list[list[int]] = []
    for loop in range(len(nest.sizes)):
        if groups and loop != apart and _walk_as_one(nest, groups[-1][-1], loop):
            groups[-1].append(loop)
        else:
            groups.append([loop])
    return replace(
        nest,
        sizes=tuple(math.prod(nest.sizes[loop] for loop in group) for group in groups),
        reductions=frozenset(n for n, group in enumerate(groups) if group[0] in nest.reductions),
        accesses=tuple(
            replace(access, coefficients=tuple(access.coefficients[g[-1]] for g in groups))
            for access in nest.accesses
        ),
    )


def _walk_as_one(nest: Nest, outer: int, inner: int) -> bool:
    if (outer in nest.reductions) != (inner in nest.reductions):
        return False
    return all(
        access.coefficients[outer] == access.coefficients[inner] * nest.sizes[inner]
        for access in nest.accesses
    )


def body_cost(body: Block) -> int:
    """Returns a rough cost of one iteration, in simple ops."""
    return sum(_cost(op) for op in body.ops)


def _cost(op: Operation) -> int:
    if op.name.startswith("math."):
        return 16
    return 8 if op.name in ("arith.divf", "arith.divsi", "arith.remsi", "arith.divui") else 1
