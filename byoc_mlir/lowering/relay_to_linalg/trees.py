"""Decision trees as one kernel: several walks at a time, each step without a branch.

A walk is a chain of loads, each of which waits for the one before. So eight rows go through a tree
beside each other, or one row through eight trees. After a few steps, the rows that have come to a
leaf are left out. What a step reads of a node lies together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.relay import ml as relay
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num, Variable

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_LANES = 8
_CHUNK = 256
"""Rows that go through a tree before the next one; so a tree stays in the cache."""
_PHASE = 6
"""Steps after which rows that have come to a leaf are left out."""

_STARTS = {"sum": 0.0, "min": float("inf"), "max": float("-inf")}


@dataclass(frozen=True)
class _Tables:
    """The constants of an ensemble as its kernel reads them."""

    roots: Array
    depths: Array
    nodes: Array
    """`[M, 2]`: the bits of the threshold, and `left << feature_bits | feature`."""
    feature_bits: int
    leaves: Array
    """Of each node where its weights are: the leaf; with one weight for each, the target."""
    weights: Array
    """`[L, W]`, or of each node if there is one weight for each."""

    @property
    def is_single(self) -> bool:
        """Whether each leaf has one weight."""
        return self.weights.ndim == 1


class _Forest:
    """The tables of an ensemble in its kernel."""

    def __init__(self, op: relay.TreeEnsembleOp, tables: _Tables, k: Kernel):
        self.k = k
        self.aggregate = op.aggregate.data
        self.feature_bits = tables.feature_bits
        self.is_single = tables.is_single
        self.data, self.roots, self.depths, self.nodes, self.leaves, self.weights, *firsts = (
            k.inputs
        )
        self.firsts = firsts[0] if firsts else None
        (self.output,) = k.outputs

    def left(self, node: Num) -> tuple[Num, Num]:
        """The left one of the nodes below, which a leaf is itself, and the feature."""
        link = self.nodes[node, 1]
        mask = self.k.constant(2**self.feature_bits - 1, link.type)
        return link.shifted_right(self.feature_bits), link & mask

    def step(self, row: Num, node: Num) -> Num:
        """The node that follows for a row."""
        threshold = self.nodes[node, 0].bits_as(self.data.type)
        left, feature = self.left(node)
        is_right = self.data[row, feature.to(INDEX)] <= threshold
        return left.to(INDEX) + is_right.to(i32).to(INDEX)

    def walk(self, row: Num, trees: Sequence[Num]) -> None:
        """One row through some trees, the last of which is the deepest."""
        k = self.k
        nodes = [k.variable(self.roots[tree]) for tree in trees]
        with k.loop(self.depths[trees[-1]].to(INDEX)):
            for variable in nodes:
                variable.value = self.step(row, variable.value.to(INDEX)).to(i32)
        for variable in nodes:
            self.add(row, variable.value.to(INDEX))

    def add(self, row: Num, node: Num) -> None:
        """Adds the weights of the leaf that a walk ended at."""
        if self.is_single:
            target = self.leaves[node].to(INDEX) if self.output.shape[1] > 1 else 0
            self._combine((row, target), self.weights[node])
            return
        place = self.leaves[node].to(INDEX)
        assert self.firsts is not None
        with self.k.loop(self.weights.shape[1]) as offset:
            target = self.firsts[place].to(INDEX) + offset
            self._combine((row, target), self.weights[place, offset])

    def _combine(self, at: tuple[Index, Index], weight: Num) -> None:
        before = self.output[at]
        match self.aggregate:
            case "min":
                self.output[at] = before.min(weight)
            case "max":
                self.output[at] = before.max(weight)
            case _:
                self.output[at] = before + weight


class _Walks:
    """The walks of many rows through one tree at a time."""

    def __init__(self, forest: _Forest):
        self._forest = forest
        self._k = k = forest.k
        self._ends = k.stack(_CHUNK, i32)
        """Of each row the node that it has come to."""
        self._rows, self._places = k.stack(_CHUNK, i32), k.stack(_CHUNK, i32)
        """The rows that still walk, and their nodes."""

    def through(self, tree: Num, begin: Num, count: Num) -> None:
        """Takes `count` rows from `begin` on through a tree."""
        k, forest = self._k, self._forest
        depth = forest.depths[tree].to(INDEX)
        steps = depth.min(_PHASE)
        with k.loop(count, step=_LANES) as first:
            numbers = [(first + lane).min(count - 1) for lane in range(_LANES)]
            nodes = [k.variable(forest.roots[tree]) for _ in numbers]
            self._advance([begin + number for number in numbers], nodes, steps)
            for number, node in zip(numbers, nodes, strict=True):
                self._ends[number] = node.value
        with k.when(depth > _PHASE):
            self._on(begin, count, depth - steps)
        with k.loop(count) as number:
            forest.add(begin + number, self._ends[number].to(INDEX))

    def _on(self, begin: Num, count: Num, depth: Num) -> None:
        """Goes on to the leaves."""
        k = self._k
        walking, left = k.variable(k.index(0)), k.variable(depth)
        with k.loop(count) as number:
            self._keep(walking, number.to(i32), self._ends[number])
        with k.repeat_while(lambda: walking.value > 0):
            steps, count = left.value.min(_PHASE), walking.value
            left.value = left.value - steps
            with k.loop(count, step=_LANES) as first:
                lanes = [(first + lane).min(count - 1) for lane in range(_LANES)]
                nodes = [k.variable(self._places[lane]) for lane in lanes]
                rows = [begin + self._rows[lane].to(INDEX) for lane in lanes]
                self._advance(rows, nodes, steps)
                for lane, node in zip(lanes, nodes, strict=True):
                    self._places[lane] = node.value
            walking.value = k.index(0)
            with k.loop(count) as number:
                row, node = self._rows[number], self._places[number]
                self._ends[row.to(INDEX)] = node
                self._keep(walking, row, node)

    def _advance(self, rows: Sequence[Num], nodes: Sequence[Variable], steps: Num) -> None:
        with self._k.loop(steps):
            for row, node in zip(rows, nodes, strict=True):
                node.value = self._forest.step(row, node.value.to(INDEX)).to(i32)

    def _keep(self, walking: Variable, row: Num, node: Num) -> None:
        """Adds a row to those that walk if it is at no leaf."""
        at = walking.value
        self._rows[at], self._places[at] = row, node
        left, _ = self._forest.left(node.to(INDEX))
        is_inner = ~left.to(i32).equals(node)
        walking.value = at + is_inner.to(i32).to(INDEX)


def _lower_tree_ensemble(op: relay.TreeEnsembleOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    steps = _checked_steps(op)
    tables = _tables(op)
    constants = [tables.roots, tables.depths, tables.nodes, tables.leaves, tables.weights]
    if not tables.is_single:
        constants.append(_constant(op, op.firsts))
    operands = [op.data, *(b.constant(array, "trees") for array in constants)]
    k = Kernel(op, operands)
    forest = _Forest(op, tables, k)
    rows = shape_of(op.data)[0]
    chunks = -(-rows // _CHUNK)
    with k.loops([chunks], cost=min(rows, _CHUNK) * steps * ASSUMED.tree_step) as (chunk,):
        begin = k.index(chunk) * _CHUNK
        end = (begin + _CHUNK).min(rows)
        _clear(k, forest.output, begin, end, _STARTS[op.aggregate.data])
        if rows < _LANES:
            with k.loop(end, start=begin) as row:
                _trees_beside(k, forest, row)
        else:
            walks = _Walks(forest)
            with k.loop(forest.roots.size) as tree:
                walks.through(tree, begin, end - begin)
    return k.finish(b)


def _clear(k: Kernel, output: Buffer, begin: Num, end: Num, start: float) -> None:
    with k.loop(end, start=begin) as row, k.loop(output.shape[1]) as target:
        output[row, target] = start


def _trees_beside(k: Kernel, forest: _Forest, row: Num) -> None:
    count = forest.roots.size
    whole = count - count % _LANES
    with k.loop(whole, step=_LANES) as first:
        forest.walk(row, [first + lane for lane in range(_LANES)])
    with k.loop(count, start=whole) as tree:
        forest.walk(row, [tree])


def _tables(op: relay.TreeEnsembleOp) -> _Tables:
    """The constants, what a step reads of a node put together."""
    operands = [_constant(op, value) for value in op.operands[1:]]
    roots, depths, lefts, features, thresholds, leaves, firsts, weights = operands
    bits = int(features.max(initial=0)).bit_length()
    is_wide = thresholds.dtype == np.float64 or int(lefts.max(initial=0)) >= 1 << (31 - bits)
    word = np.dtype(np.int64 if is_wide else np.int32)
    numbers = thresholds.view(np.int64 if thresholds.dtype == np.float64 else np.int32)
    nodes = np.stack([numbers.astype(word), lefts.astype(word) << bits | features], 1)
    if weights.shape[1] == 1:
        return _Tables(roots, depths, nodes, bits, firsts[leaves], weights[leaves, 0])
    return _Tables(roots, depths, nodes, bits, leaves, weights)


def _checked_steps(op: relay.TreeEnsembleOp) -> int:
    """All steps of a row, once every place that a walk can read is found to be inside.

    Raises:
        PassFailedException: a table is no constant, or has a place outside.
    """
    tables = [_constant(op, value) for value in op.operands[1:]]
    roots, depths, lefts, features, thresholds, leaves, firsts, weights = tables
    nodes, is_leaf = len(lefts), np.isnan(thresholds)
    last = lefts + ~is_leaf
    places = (
        ("roots", roots, nodes),
        ("lefts", np.append(lefts, last), nodes),
        ("features", features, shape_of(op.data)[1]),
        ("leaves", leaves, weights.shape[0]),
        ("firsts", firsts + max(weights.shape[1] - 1, 0), op.targets.value.data),
        ("firsts", firsts, op.targets.value.data),
    )
    for what, found, size in places:
        if found.size and not (found.min() >= 0 and found.max() < size):
            raise PassFailedException(f"{op.name} at {op.location}: {what} has places outside")
    if (np.diff(depths) < 0).any():
        raise PassFailedException(f"{op.name} at {op.location}: depths must not decrease")
    return max(1, int(depths.sum()))


def _constant(op: relay.TreeEnsembleOp, value: SSAValue) -> Array:
    if not isinstance(value.owner, ConstantOp):
        raise PassFailedException(
            f"{op.name} at {op.location}: all operands but the first must be constants"
        )
    return value.owner.array


FUNCTIONS: Lowerings = {relay.TreeEnsembleOp: _lower_tree_ensemble}
