"""Random relay graphs, and facts about modules established without the partitioner's code."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

from xdsl.dialects.builtin import FunctionType, ModuleOp, TensorType, f32
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from byoc_mlir.dialects.byoc import CompositeOp, region_compiler
from byoc_mlir.dialects.locations import node_location, node_names
from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dialects.relay.elementwise import (
    AddOp,
    ExpOp,
    MultiplyOp,
    NegativeOp,
    SigmoidOp,
    SubtractOp,
    TanhOp,
)
from byoc_mlir.dialects.relay.nn import ReluOp
from byoc_mlir.dialects.relay.transform import ConcatenateOp, SplitOp

ONE, TWO = TensorType(f32, [1]), TensorType(f32, [2])
UNARY = (ReluOp, TanhOp, SigmoidOp, ExpOp, NegativeOp)
BINARY = (AddOp, MultiplyOp, SubtractOp)


def random_module(seed: int, size: int) -> ModuleOp:
    """Returns a function with `size` ops over tensors of one and two elements, each located at a
    node.
    """
    rng = random.Random(seed)
    block = Block(arg_types=[rng.choice((ONE, TWO)) for _ in range(rng.randint(1, 4))])
    values: list[SSAValue] = list(block.args)
    locality = rng.choice((3, 8, 1000))
    for number in range(size):
        if rng.random() < 0.05:
            made: Operation = ConstantOp.create(
                properties={"value": _small_constant(rng)}, result_types=[ONE]
            )
        else:
            made = _random_op(rng, values[-locality:])
        made.location = node_location(f"n{number}")
        block.add_op(made)
        values.extend(made.results)
    unused = [value for value in values if not any(value.uses)]
    results = [value for value in unused if rng.random() < 0.9] or values[-1:]
    results += rng.sample(values, min(len(values), rng.randint(0, 2)))
    block.add_op(ReturnOp(*results))
    type_ = FunctionType.from_lists(
        [argument.type for argument in block.args], [value.type for value in results]
    )
    return ModuleOp([FuncOp("main", type_, Region(block))])


def _small_constant(rng: random.Random):
    import numpy as np

    array = np.asarray([rng.randint(0, 3)], dtype=np.float32)
    return ConstantOp.inline(array, ONE).value


def _random_op(rng: random.Random, values: list[SSAValue]) -> RelayOp:
    first = rng.choice(values)
    same = [value for value in values if value.type == first.type]
    kind = rng.random()
    if kind < 0.1:
        if first.type == TWO:
            return SplitOp(first, sections=[1, 1], axis=0)
        return ConcatenateOp([first, rng.choice(same)], axis=0)
    if kind < 0.5:
        return rng.choice(UNARY)(first)
    return rng.choice(BINARY)(first, rng.choice(same))


def shuffled(module: ModuleOp, seed: int) -> ModuleOp:
    """Returns the same module with the ops of @main in another topological order."""
    rng = random.Random(seed)
    module = module.clone()
    block = main_block(module)
    last = block.last_op
    assert last is not None
    missing = {op: _sources(op) for op in block.ops if op is not last}
    order: list[Operation] = []
    while missing:
        ready = [op for op, sources in missing.items() if not sources]
        chosen = rng.choice(ready)
        del missing[chosen]
        order.append(chosen)
        for sources in missing.values():
            sources.discard(chosen)
    for op in list(block.ops):
        op.detach()
    block.add_ops([*order, last])
    return module


def _sources(op: Operation) -> set[Operation]:
    return {value.owner for value in op.operands if isinstance(value.owner, Operation)}


def main_block(module: ModuleOp) -> Block:
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            return op.body.block
    raise AssertionError("no @main")


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.body.block.ops if isinstance(op, FuncOp)}


class Evaluator:
    """Symbolic evaluator: equal numbers mean equal expressions, across modules."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}

    def results(self, module: ModuleOp) -> list[int]:
        block = main_block(module)
        arguments = [self._number(("argument", index)) for index in range(len(block.args))]
        return self._block(block, arguments, functions(module))

    def _number(self, key: object) -> int:
        return self._numbers.setdefault(key, len(self._numbers))

    def _block(self, block: Block, arguments: list[int], known: dict[str, FuncOp]) -> list[int]:
        values: dict[SSAValue, int] = dict(zip(block.args, arguments, strict=True))
        for op in block.ops:
            operands = [values[value] for value in op.operands]  # KeyError: used before defined
            if op is block.last_op:
                return operands
            if isinstance(op, CallOp):
                body = known[op.callee.string_value()].body.block
                outputs = self._block(body, operands, known)
            elif isinstance(op, CompositeOp):
                outputs = self._block(op.body.block, operands, known)
            elif op.name.startswith("byoc."):
                outputs = operands
            else:
                key = (op.name, tuple(sorted(op.properties.items(), key=str)), tuple(operands))
                outputs = [self._number((key, index)) for index in range(len(op.results))]
            values.update(zip(op.results, outputs, strict=True))
        raise AssertionError("no terminator")


def nodes_held(module: ModuleOp) -> Counter[str]:
    """Counts the ops of each node, without constants."""
    return Counter(
        name
        for op in module.walk()
        if isinstance(op, RelayOp) and not isinstance(op, ConstantOp)
        for name in node_names(op)
    )


def region_nodes(module: ModuleOp) -> list[tuple[str, frozenset[str]]]:
    """Returns the backend and the nodes of each outlined region."""
    found: list[tuple[str, frozenset[str]]] = []
    for func in functions(module).values():
        compiler = region_compiler(func)
        if compiler is not None:
            names = (
                name
                for op in func.walk()
                if isinstance(op, RelayOp) and not isinstance(op, ConstantOp)
                for name in node_names(op)
            )
            found.append((compiler, frozenset(names)))
    return found


def mergeable_pairs(module: ModuleOp) -> list[tuple[str, str]]:
    """Yields pairs of calls of neighbouring regions of one backend that one function could replace.

    Brute force on the ops of @main: both, with all of their backend between them, are contracted to
    one node, and the graph is searched for a cycle.
    """
    block = main_block(module)
    known = functions(module)
    ops = [op for op in block.ops if op is not block.last_op and not isinstance(op, ConstantOp)]
    compilers = {op: _compiler(op, known) for op in ops}
    after = {op: _users(op, ops) for op in ops}
    reachable = _closure(ops, after)
    pairs: list[tuple[str, str]] = []
    for position, one in enumerate(ops):
        for two in ops[position + 1 :]:
            if compilers[one] is None or compilers[one] != compilers[two]:
                continue
            if not (two in after[one] or _share_input(one, two)):
                continue
            group = {one, two} | {
                op
                for op in ops
                if compilers[op] == compilers[one] and op in reachable[one] and two in reachable[op]
            }
            if not _cyclic(group, after, reachable):
                pairs.append((str(one), str(two)))
    return pairs


def _compiler(op: Operation, known: dict[str, FuncOp]) -> str | None:
    if isinstance(op, CallOp):
        return region_compiler(known[op.callee.string_value()])
    return None


def _users(op: Operation, ops: Iterable[Operation]) -> set[Operation]:
    inside = set(ops)
    users = {use.operation for result in op.results for use in result.uses}
    return users & inside


def _closure(
    ops: list[Operation], after: dict[Operation, set[Operation]]
) -> dict[Operation, set[Operation]]:
    reachable: dict[Operation, set[Operation]] = {}
    for op in reversed(ops):
        reachable[op] = set(after[op]).union(*(reachable[user] for user in after[op]))
    return reachable


def _share_input(one: Operation, two: Operation) -> bool:
    shared = set(one.operands) & set(two.operands)
    return any(not isinstance(value.owner, ConstantOp) for value in shared)


def _cyclic(
    group: set[Operation],
    after: dict[Operation, set[Operation]],
    reachable: dict[Operation, set[Operation]],
) -> bool:
    leaving = {user for op in group for user in after[op]} - group
    return any(group & reachable[user] for user in leaving)
