"""Placement of each op of a partitioned module, with reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation

from byoc_mlir.dialects.byoc import REASON, CompositeOp, refusals, region_compiler
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import control as relay
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.transforms.blocks import is_annotation, is_constant, is_terminator
from byoc_mlir.transforms.region_times import times_of
from byoc_mlir.transforms.work import multiplications, precision

HOST = "host"


@dataclass(frozen=True)
class Placement:
    """Placement of one op."""

    nodes: tuple[str, ...]
    """Names of the ONNX nodes that the op stands for."""
    op: str
    """Relay name of the op."""
    backend: str
    """Name of a backend, or `host`."""
    region: str = ""
    """Symbol of the op's outlined region."""
    composite: str = ""
    """Name of the op's composite."""
    reason: str = ""
    """Reason for the host, or, in a region, the reasons of composites that refused the op."""
    precision: str = field(default="", compare=False)
    """Type that the op computes in."""
    multiplications: int = field(default=0, compare=False)
    """Number of MACs of a convolution or matmul."""
    times: RegionTimes | None = field(default=None, compare=False)
    """Times of the op's region, or of the region that it was in before it went back to the host."""


def placements(module: ModuleOp, views: AbstractSet[Operation] = frozenset()) -> list[Placement]:
    """Returns a row for every op of the module that computes something, in program order.

    The rows of a region stand at its first call. An op of a function that `relay.call`s share
    counts once for each call.

    Args:
        views: ops of host functions that are views, and get no row.
    """
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp)}
    pending = {name: op for name, op in functions.items() if region_compiler(op) is not None}
    host = [op for name, op in functions.items() if name not in pending]
    calls = Counter(op.body for op in module.walk() if isinstance(op, relay.CallOp))
    rows = [
        _counted(row, calls[SymbolRefAttr(func.sym_name)])
        for func in host
        for row in _in_function(func, pending, views)
    ]
    rest = list(pending.values())
    return rows + [row for func in rest for row in _in_function(func, {}, views)]


def _counted(row: Placement, calls: int) -> Placement:
    return row if calls < 2 else replace(row, multiplications=calls * row.multiplications)


def _in_function(
    func: FuncOp, regions: dict[str, FuncOp], views: AbstractSet[Operation]
) -> Iterator[Placement]:
    times = times_of(func)
    for block in func.body.blocks:
        for row in _in_block(block, region_compiler(func), func.sym_name.data, regions, views):
            yield row if times is None else replace(row, times=times)


def _in_block(
    block: Block,
    compiler: str | None,
    symbol: str,
    regions: dict[str, FuncOp],
    views: AbstractSet[Operation],
) -> Iterator[Placement]:
    """Yields the rows of a block; `regions` are the regions without rows so far."""
    for op in block.ops:
        if isinstance(op, CallOp):
            called = regions.pop(op.callee.string_value(), None)
            if called is not None:
                yield from _in_function(called, regions, views)
            continue
        if is_annotation(op) or is_constant(op) or is_terminator(op) or op in views:
            continue
        if isinstance(op, relay.CallOp):
            continue  # its function has rows
        if isinstance(op, CompositeOp):
            name = op.composite_name.data
            for inner in op.ops():
                if not is_constant(inner):
                    yield _row(inner, compiler, symbol, name, op)
            continue
        yield _row(op, compiler, symbol, "", op)
        for region in op.regions:
            for nested in region.blocks:
                yield from _in_block(nested, compiler, symbol, regions, views)


def _row(
    op: Operation, compiler: str | None, symbol: str, composite: str, reasoned: Operation
) -> Placement:
    nodes, name = node_names(op), relay_name(op)
    cost = precision(op), multiplications(op)
    reasons = refusals(reasoned)
    if compiler is not None:
        return Placement(nodes, name, compiler, symbol, composite, "; ".join(reasons), *cost)
    reason = reasoned.attributes.get(REASON)
    said = reason.data if isinstance(reason, StringAttr) else ""
    reasons = [said] + [other for other in reasons if other not in said]
    said = "; ".join(filter(None, reasons))
    return Placement(nodes, name, HOST, "", "", said, *cost, times_of(reasoned))
