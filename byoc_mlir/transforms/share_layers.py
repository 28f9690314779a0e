"""The pass `share-layers`."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from byoc_mlir.dialects.locations import fused_location
from byoc_mlir.dialects.relay import ConstantOp, RelayOp, WeightAttr
from byoc_mlir.dialects.relay.blockwise import BlockwiseDenseOp
from byoc_mlir.dialects.relay.control import CallOp
from byoc_mlir.dialects.relay.elementwise import BroadcastOp
from byoc_mlir.dialects.relay.index import UpdateSliceOp
from byoc_mlir.patterns.scope import outside_use
from byoc_mlir.transforms.op_structure import Structure

_FEWEST_OPS = 16
"""Minimum number of ops of a function: with fewer, a call is not worth it."""


class ShareLayers(ModulePass):
    """Moves parts of @main that are equal but for their weights into one function.

    So the layers of a language model are partitioned, lowered and compiled once. A part ends where
    a cache is updated, since @main decides whether that happens in place: a part has the attention
    of a layer and the projections of the next one. Weights become arguments if kernels read them as
    they are, and nothing packs them. An op of the function is located at the nodes of all layers.

    ```mlir
    %1 = relay.nn.blockwise_dense %0, %codes, %scales, %zeros : …
    …
    // becomes
    %1 = relay.call %0, %codes, %scales {body = @layer_0} : …
    ```
    """

    name = "share-layers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = {each.sym_name.data: each for each in op.ops if isinstance(each, FuncOp)}
        if "main" not in functions:
            return
        groups: dict[Hashable, list[_Part]] = {}
        for ops in _runs(functions["main"].body.block):
            part = _Part.of(ops)
            groups.setdefault(part.key(functions), []).append(part)
        repeated = [parts for parts in groups.values() if len(parts) > 1]
        for number, parts in enumerate(repeated):
            function = parts[0].function(f"layer_{number}")
            _locate(function.body.block, parts)
            op.body.block.add_op(function)
            for part in parts:
                part.call(SymbolRefAttr(function.sym_name))


@dataclass(frozen=True)
class _Part:
    """Consecutive ops of @main, without the constants that become arguments."""

    ops: Sequence[Operation]
    outputs: Sequence[SSAValue]
    """Results that other ops use."""

    @staticmethod
    def of(ops: Sequence[Operation]) -> _Part:
        """Returns the part of these ops."""
        moved = [op for op in ops if not _is_argument(op)]
        own = set(moved)
        results = [result for op in moved for result in op.results]
        return _Part(moved, [one for one in results if outside_use(one, own) is not None])

    def key(self, functions: Mapping[str, FuncOp]) -> Hashable:
        """Returns a key that equal parts share."""
        structure = Structure(functions)
        ops = tuple(map(structure.add, self.ops))
        return (ops, tuple(map(structure.number, self.outputs)))

    def captured(self) -> list[SSAValue]:
        """Returns the values from outside, in the order in which the ops use them."""
        own = {result for op in self.ops for result in op.results}
        used = dict.fromkeys(operand for op in self.ops for operand in op.operands)
        return [value for value in used if value not in own]

    def function(self, name: str) -> FuncOp:
        """Returns a function with copies of the ops."""
        captured = self.captured()
        types = [value.type for value in captured]
        block = Block(arg_types=types)
        values: dict[SSAValue, SSAValue] = dict(zip(captured, block.args, strict=True))
        for op in self.ops:
            block.add_op(op.clone(values))
        block.add_op(ReturnOp(*(values[output] for output in self.outputs)))
        type_ = FunctionType.from_lists(types, [output.type for output in self.outputs])
        return FuncOp(name, type_, Region(block), visibility="private")

    def call(self, symbol: SymbolRefAttr) -> None:
        """Replaces the ops by a call of a function."""
        types = [output.type for output in self.outputs]
        call = CallOp(self.captured(), result_types=types, body=symbol)
        call.location = fused_location(self.ops)
        last = self.ops[-1]
        block = last.parent
        assert block is not None
        block.insert_op_after(call, last)
        for output, result in zip(self.outputs, call.results, strict=True):
            output.replace_all_uses_with(result)
        for op in reversed(self.ops):
            Rewriter.erase_op(op)


def _locate(block: Block, parts: Sequence[_Part]) -> None:
    """Locates each op of a shared function at the nodes of all the parts that call it."""
    for op, equal in zip(block.ops, zip(*(part.ops for part in parts), strict=True), strict=False):
        op.location = fused_location(equal)


def _runs(block: Block) -> Iterator[Sequence[Operation]]:
    """Yields the parts of a block between updates of caches and ops of other dialects."""
    run: list[Operation] = []
    for op in block.ops:
        if isinstance(op, RelayOp) and not isinstance(op, UpdateSliceOp):
            run.append(op)
            continue
        if len(run) >= _FEWEST_OPS:
            yield run
        run = []


def _is_argument(op: Operation) -> bool:
    """True if an op is a large constant that is the same to its users as a computed operand."""
    if not isinstance(op, ConstantOp) or not isinstance(op.value, WeightAttr):
        return False
    return all(
        isinstance(use.operation, BroadcastOp)
        or (isinstance(use.operation, BlockwiseDenseOp) and use.index > 0)
        for use in op.output.uses
    )
