"""Where each op of a partitioned module runs, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation

from byoc_mlir.dialects.byoc import REASON, CompositeOp, refusals, region_compiler
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.runtime.report import RegionTimes
from byoc_mlir.transforms.blocks import is_annotation, is_constant, is_terminator
from byoc_mlir.transforms.region_times import times_of
from byoc_mlir.transforms.work import multiplications, precision

HOST = "host"


@dataclass(frozen=True)
class Placement:
    """One op and where it runs."""

    nodes: tuple[str, ...]
    """The ONNX nodes that it stands for."""
    op: str
    """Its Relay name."""
    backend: str
    """A backend's name, or `host`."""
    region: str = ""
    """The symbol of its outlined region."""
    composite: str = ""
    """The name of its composite."""
    reason: str = ""
    """On the host: why. In a region: the composites that refused it."""
    precision: str = field(default="", compare=False)
    """What it computes with."""
    multiplications: int = field(default=0, compare=False)
    """How many products it has, for convolutions and matrix products."""
    times: RegionTimes | None = field(default=None, compare=False)
    """Of the region that it is in, or was in before that went back to the host."""


def placements(module: ModuleOp) -> list[Placement]:
    """A row for every op of the module that computes something, in program order.

    A region's rows stand where it is called first.
    """
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, FuncOp)}
    pending = {name: op for name, op in functions.items() if region_compiler(op) is not None}
    host = [op for name, op in functions.items() if name not in pending]
    rows = [row for func in host for row in _in_function(func, pending)]
    return rows + [row for func in list(pending.values()) for row in _in_function(func, {})]


def _in_function(func: FuncOp, regions: dict[str, FuncOp]) -> Iterator[Placement]:
    times = times_of(func)
    for block in func.body.blocks:
        for row in _in_block(block, region_compiler(func), func.sym_name.data, regions):
            yield row if times is None else replace(row, times=times)


def _in_block(
    block: Block, compiler: str | None, symbol: str, regions: dict[str, FuncOp]
) -> Iterator[Placement]:
    """The rows of a block; `regions` are those that no row stands for yet."""
    for op in block.ops:
        if isinstance(op, CallOp):
            called = regions.pop(op.callee.string_value(), None)
            if called is not None:
                yield from _in_function(called, regions)
            continue
        if is_annotation(op) or is_constant(op) or is_terminator(op):
            continue
        if isinstance(op, CompositeOp):
            name = op.composite_name.data
            for inner in op.ops():
                if not is_constant(inner):
                    yield _row(inner, compiler, symbol, name, op)
            continue
        yield _row(op, compiler, symbol, "", op)
        for region in op.regions:
            for nested in region.blocks:
                yield from _in_block(nested, compiler, symbol, regions)


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
