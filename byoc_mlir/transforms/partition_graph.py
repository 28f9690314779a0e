"""The pass `partition-graph`: outlines annotated regions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.abi import COMPILER
from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.limits import in_time
from byoc_mlir.transforms.annotated_regions import find_regions, strip_annotations
from byoc_mlir.transforms.blocks import (
    blocks_of,
    erase_unused,
    host_functions,
    is_constant,
    move_ops,
    region_symbols,
)
from byoc_mlir.transforms.region_graph import RegionGraph, build_graph


@dataclass(frozen=True)
class PartitionGraph(ModulePass):
    """Outlines annotated regions into private functions with the attribute `byoc.compiler`.

    A function has one parameter for each value that enters the region, in the order of first use.
    It has one result for each value that leaves the region, in the order of the ops. Constants are
    copied into the body (`bind-constants=true`) or passed as arguments. A region without used
    results stays in place, without annotations.

    ```mlir
    func.func @main(%x: tensor<…>) -> tensor<…> {
      %0 = byoc.compiler_begin %x for "dnnl" : tensor<…>
      %1 = relay.nn.relu %0 : (tensor<…>) -> tensor<…>
      %2 = byoc.compiler_end %1 for "dnnl" : tensor<…>
      func.return %2 : tensor<…>
    }
    ```

    becomes

    ```mlir
    func.func @main(%x: tensor<…>) -> tensor<…> {
      %0 = func.call @dnnl_main_0(%x) : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    func.func private @dnnl_main_0(%x: tensor<…>) -> tensor<…> attributes {byoc.compiler = "dnnl"} {
      %0 = relay.nn.relu %x : (tensor<…>) -> tensor<…>
      func.return %0 : tensor<…>
    }
    ```
    """

    name = "partition-graph"

    bind_constants: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        outlined = region_symbols(op)
        graphs: list[tuple[FuncOp, Block, RegionGraph, list[int]]] = []
        for func in host_functions(op):
            for block in blocks_of(func):
                graph = build_graph(block, find_regions(block), outlined)
                graphs.append((func, block, graph, graph.order()))
        outliner = _Outliner(op, self.bind_constants)
        for func, block, graph, order in graphs:
            strip_annotations(block)
            outliner.outline_block(func, block, graph, order)


class _Outliner:
    """Outliner of one module's regions; it keeps the set of symbols in use."""

    def __init__(self, module: ModuleOp, bind_constants: bool):
        self._bind_constants = bind_constants
        self._symbols = {
            name.data
            for op in module.walk()
            if isinstance(name := op.properties.get("sym_name"), StringAttr)
        }
        self._next: dict[str, int] = {}
        self._after: dict[FuncOp, Operation] = {}

    def outline_block(
        self, func: FuncOp, block: Block, graph: RegionGraph, order: Sequence[int]
    ) -> None:
        """Outlines the regions of a block, and reorders its nodes to the given order."""
        if all(node.compiler is None for node in graph.nodes):
            return
        _reorder(block, [op for node in order for op in graph.nodes[node].ops])
        for index in in_time(order):
            node = graph.nodes[index]
            if node.compiler is not None:
                self._outline(func, node.compiler, node.ops)

    def _outline(self, caller: FuncOp, compiler: str, ops: Sequence[Operation]) -> None:
        inside = set(ops)
        results = _leaving(ops)
        if not results:
            return
        inputs, constants = self._entering(ops)
        symbol = self._symbol(compiler, caller)
        call = CallOp(symbol, inputs, [value.type for value in results])
        call.location = fused_location(ops)
        Rewriter.insert_op(call, InsertPoint.before(ops[0]))
        body = Block(arg_types=[value.type for value in inputs])
        function = FuncOp(
            symbol,
            ([value.type for value in inputs], [value.type for value in results]),
            visibility="private",
        )
        function.body.detach_block(0)
        function.body.add_block(body)
        function.attributes[COMPILER] = StringAttr(compiler)
        function.location = call.location
        for value, result in zip(results, call.results, strict=True):
            result.name_hint = value.name_hint
            value.replace_uses_with_if(result, lambda use: use.operation not in inside)
        move_ops(ops, body, inputs, constants)
        body.add_op(ReturnOp(*results))
        erase_unused(constants)
        self._insert_after(caller, function)

    def _entering(self, ops: Sequence[Operation]) -> tuple[list[SSAValue], list[Operation]]:
        """Returns the values from outside in the order of first use, and the constants to copy."""
        inside = set(ops)
        inputs, constants = dict[SSAValue, None](), dict[Operation, None]()
        for op in ops:
            for value in op.operands:
                owner = value.owner
                if owner in inside:
                    continue
                if self._bind_constants and isinstance(owner, Operation) and is_constant(owner):
                    constants[owner] = None
                else:
                    inputs[value] = None
        return list(inputs), list(constants)

    def _symbol(self, compiler: str, caller: FuncOp) -> str:
        stem = _sanitised(f"{compiler}_{caller.sym_name.data}")
        number = self._next.get(stem, 0)
        while f"{stem}_{number}" in self._symbols:
            number += 1
        self._next[stem] = number + 1
        return f"{stem}_{number}"

    def _insert_after(self, caller: FuncOp, function: FuncOp) -> None:
        previous = self._after.get(caller, caller)
        Rewriter.insert_op(function, InsertPoint.after(previous))
        self._after[caller] = function


def _sanitised(name: str) -> str:
    """Converts a name to an ASCII identifier, which does not start with a digit."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{name}" if name[0].isdigit() else name


def _reorder(block: Block, ops: Sequence[Operation]) -> None:
    """Reorders the ops of a block; its terminator stays last."""
    last = block.last_op
    if last is not None and last in set(ops):
        last = None
    if list(block.ops) == [*ops, *([last] if last is not None else [])]:
        return
    for op in in_time(block.ops):
        op.detach()
    block.add_ops(ops if last is None else [*ops, last])


def _leaving(ops: Sequence[Operation]) -> list[SSAValue]:
    inside = set(ops)
    return [
        result
        for op in ops
        for result in op.results
        if any(use.operation not in inside for use in result.uses)
    ]
