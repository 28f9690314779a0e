"""Annotated regions: reading them from a block, checking them, and writing them back.

A region is a set of ops between annotations. Ops that exchange a value without an annotation are in
one region, and so are ops that share a `byoc.compiler_begin`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.byoc import CompilerBeginOp, CompilerEndOp
from byoc_mlir.limits import in_time
from byoc_mlir.patterns.subjects import describe
from byoc_mlir.transforms.blocks import (
    can_offload,
    is_annotation,
    is_constant,
    is_constant_value,
    is_node,
)
from byoc_mlir.transforms.union_find import UnionFind

Annotation: TypeAlias = CompilerBeginOp | CompilerEndOp


@dataclass(frozen=True)
class AnnotatedRegion:
    """Ops of one block, in program order, that one backend is to run together."""

    compiler: str
    ops: tuple[Operation, ...]


def find_regions(block: Block) -> list[AnnotatedRegion]:
    """Returns the annotated regions of a block, ordered by their first op.

    Raises:
        PassFailedException: the annotations are inconsistent; the message says where and why.
    """
    if not any(is_annotation(op) for op in block.ops):
        return []
    sets = _joined(block)
    annotations: dict[Operation, list[Annotation]] = {}
    members: dict[Operation, list[Operation]] = {}
    for op in block.ops:
        if isinstance(op, CompilerBeginOp | CompilerEndOp):
            annotations.setdefault(sets.find(op), []).append(op)
        elif is_node(op) and can_offload(op):
            members.setdefault(sets.find(op), []).append(op)
    regions = [
        AnnotatedRegion(_compiler(ops, annotations[root]), tuple(ops))
        for root, ops in members.items()
        if root in annotations
    ]
    _check_borders(block, regions)
    return regions


def strip_annotations(block: Block) -> None:
    """Removes all annotations of a block."""
    for op in in_time(block.ops):
        if isinstance(op, CompilerBeginOp | CompilerEndOp):
            Rewriter.replace_op(op, (), [op.value])


def unannotated(value: SSAValue) -> SSAValue:
    """Returns the value before all `byoc.compiler_begin` and `byoc.compiler_end` ops on it."""
    while isinstance(value.owner, CompilerBeginOp | CompilerEndOp):
        value = value.owner.value
    return value


def insert_annotations(regions: Iterable[AnnotatedRegion]) -> None:
    """Annotates regions: a begin for each value that enters, and an end for each value that leaves.

    Constants get no begin: each region that uses a constant gets a copy, or takes it as an
    argument.
    """
    for region in regions:
        inside = set(region.ops)
        begins = dict[SSAValue, SSAValue]()
        for op in region.ops:
            for index, value in enumerate(op.operands):
                if value.owner in inside or is_constant_value(value):
                    continue
                if value not in begins:
                    begins[value] = _insert_begin(value, region.compiler, op)
                op.operands[index] = begins[value]
        for op in region.ops:
            _insert_ends(op, region.compiler, inside)


def _insert_begin(value: SSAValue, compiler: str, op: Operation) -> SSAValue:
    begin = CompilerBeginOp(value, compiler)
    Rewriter.insert_op(begin, InsertPoint.before(op))
    return begin.result


def _insert_ends(op: Operation, compiler: str, inside: set[Operation]) -> None:
    for result in reversed(op.results):
        if all(use.operation in inside for use in result.uses):
            continue
        end = CompilerEndOp(result, compiler)
        result.replace_uses_with_if(
            end.result,
            lambda use, end=end: use.operation not in inside and use.operation is not end,
        )
        Rewriter.insert_op(end, InsertPoint.after(op))


def _joined(block: Block) -> UnionFind[Operation]:
    sets = UnionFind[Operation]()
    for op in block.ops:
        if isinstance(op, CompilerEndOp):
            sets.join(op, _ended_op(op))
        elif isinstance(op, CompilerBeginOp):
            _check_begin(op)
        elif is_node(op) and can_offload(op):
            for value in op.operands:
                owner = value.owner
                if not isinstance(owner, Operation) or owner.parent is not block:
                    continue
                inner = is_node(owner) and can_offload(owner)
                if inner or isinstance(owner, CompilerBeginOp):
                    sets.join(op, owner)
    return sets


def _ended_op(end: CompilerEndOp) -> Operation:
    """Returns the op whose region an end closes: the producer of its operand, or the begin that
    produces it.
    """
    op = end.value.owner
    if not isinstance(op, Operation) or op.parent is not end.parent:
        _fail(end, f"byoc.compiler_end of {describe(end.value)}, which no region computes")
    if isinstance(op, CompilerEndOp):
        _fail(end, "byoc.compiler_end of a value that has left its region already")
    if isinstance(op, CompilerBeginOp):
        if op.compiler != end.compiler:
            _fail(end, f"region begins for '{op.compiler.data}', ends for '{end.compiler.data}'")
        return op
    if not can_offload(op):
        _fail(end, f"byoc.compiler_end of {describe(end.value)}, which cannot be in a region")
    return op


def _check_begin(begin: CompilerBeginOp) -> None:
    if isinstance(begin.value.owner, CompilerBeginOp):
        _fail(begin, "byoc.compiler_begin of a value that has entered a region already")


def _compiler(ops: list[Operation], annotations: list[Annotation]) -> str:
    compiler = annotations[0].compiler
    for annotation in annotations:
        if annotation.compiler != compiler:
            _fail(
                annotation,
                f"one region is annotated for '{compiler.data}' and for"
                f" '{annotation.compiler.data}': {_listed(ops)}; a value between two regions needs"
                " byoc.compiler_end and byoc.compiler_begin",
            )
    if not any(isinstance(annotation, CompilerEndOp) for annotation in annotations):
        _fail(ops[-1], f"region of '{compiler.data}' has no byoc.compiler_end: {_listed(ops)}")
    return compiler.data


def _check_borders(block: Block, regions: list[AnnotatedRegion]) -> None:
    region_of = {op: region for region in regions for op in region.ops}
    for region in regions:
        for op in region.ops:
            _check_operands(op, region, region_of)
            _check_uses(op, region, region_of)
    for op in block.ops:
        if isinstance(op, CompilerBeginOp):
            _check_begin_uses(op, region_of)


def _check_operands(
    op: Operation, region: AnnotatedRegion, region_of: dict[Operation, AnnotatedRegion]
) -> None:
    for index, value in enumerate(op.operands):
        owner = value.owner
        if isinstance(owner, Operation) and (
            is_constant(owner) or isinstance(owner, CompilerBeginOp)
        ):
            continue
        if owner not in region_of:
            _fail(
                op,
                f"operand #{index} of {describe(op)}, {describe(unannotated(value))}, enters the"
                f" region of '{region.compiler}' without byoc.compiler_begin",
            )


def _check_uses(
    op: Operation, region: AnnotatedRegion, region_of: dict[Operation, AnnotatedRegion]
) -> None:
    for result in op.results:
        for use in result.uses:
            user = use.operation
            ended = isinstance(user, CompilerEndOp) and user.parent is op.parent
            if not ended and region_of.get(user) is not region:
                _fail(
                    user,
                    f"{describe(result)} leaves the region of '{region.compiler}' to"
                    f" {describe(user)} without byoc.compiler_end",
                )


def _check_begin_uses(begin: CompilerBeginOp, region_of: dict[Operation, AnnotatedRegion]) -> None:
    for use in begin.result.uses:
        user = use.operation
        if user.parent is not begin.parent:
            _fail(begin, f"byoc.compiler_begin is used in another block, by {describe(user)}")
        if user not in region_of and not isinstance(user, CompilerEndOp):
            _fail(user, f"byoc.compiler_begin feeds {describe(user)}, which no region can hold")


def _listed(ops: list[Operation]) -> str:
    shown = ", ".join(describe(op) for op in ops[:4])
    return shown if len(ops) <= 4 else f"{shown}, … ({len(ops)} ops)"


def _fail(op: Operation, reason: str) -> NoReturn:
    op.emit_error(reason, PassFailedException(reason))
