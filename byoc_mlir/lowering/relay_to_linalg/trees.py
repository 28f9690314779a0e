"""Decision trees as one kernel: several walks at a time, each step without a branch.

A walk is a chain of loads, each of which waits for the one before. So eight rows go through a tree
beside each other, or one row through eight trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.relay import ml as relay
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_LANES = 8
_CHUNK = 64
"""Rows that go through a tree before the next one; so a tree stays in the cache."""
_STEP_CYCLES = 3

_STARTS = {"sum": 0.0, "min": float("inf"), "max": float("-inf")}


class _Forest:
    """The tables of an ensemble in its kernel."""

    def __init__(self, op: relay.TreeEnsembleOp, k: Kernel):
        self.k = k
        self.aggregate = op.aggregate.data
        self.data, self.roots, self.depths, *nodes = k.inputs
        self.lefts, self.features, self.thresholds, self.leaves, self.firsts, self.weights = nodes
        (self.output,) = k.outputs

    def walk(self, rows: Sequence[Num], trees: Sequence[Num]) -> None:
        """The walks of some rows through trees, the last of which is the deepest."""
        k = self.k
        nodes = [k.variable(self.roots[tree]) for tree in trees]
        with k.loop(self.depths[trees[-1]].to(INDEX)):
            for row, variable in zip(rows, nodes, strict=True):
                node = variable.value.to(INDEX)
                value = self.data[row, self.features[node].to(INDEX)]
                left = self.lefts[node]
                variable.value = k.select(value <= self.thresholds[node], left + 1, left)
        for row, variable in zip(rows, nodes, strict=True):
            self._add(row, self.leaves[variable.value.to(INDEX)].to(INDEX))

    def _add(self, row: Num, leaf: Num) -> None:
        first, width = self.firsts[leaf].to(INDEX), self.weights.shape[1]
        if width == 1:
            self._combine((row, first), self.weights[leaf, 0])
            return
        with self.k.loop(width) as offset:
            self._combine((row, first + offset), self.weights[leaf, offset])

    def _combine(self, at: tuple[Index, Index], weight: Num) -> None:
        before = self.output[at]
        match self.aggregate:
            case "min":
                self.output[at] = before.min(weight)
            case "max":
                self.output[at] = before.max(weight)
            case _:
                self.output[at] = before + weight


def _lower_tree_ensemble(op: relay.TreeEnsembleOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    steps = _checked_steps(op)
    k = Kernel(op)
    forest = _Forest(op, k)
    rows = shape_of(op.data)[0]
    chunks = -(-rows // _CHUNK)
    with k.loops([chunks], cost=min(rows, _CHUNK) * steps * _STEP_CYCLES) as (chunk,):
        begin = k.index(chunk) * _CHUNK
        end = (begin + _CHUNK).min(rows)
        _clear(k, forest.output, begin, end, _STARTS[op.aggregate.data])
        whole = begin + (end - begin) / _LANES * _LANES
        _rows_beside(k, forest, begin, whole)
        with k.loop(end, start=whole) as row:
            _trees_beside(k, forest, row)
    return k.finish(b)


def _clear(k: Kernel, output: Buffer, begin: Num, end: Num, start: float) -> None:
    with k.loop(end, start=begin) as row, k.loop(output.shape[1]) as target:
        output[row, target] = start


def _rows_beside(k: Kernel, forest: _Forest, begin: Num, end: Num) -> None:
    with k.loop(forest.roots.size) as tree, k.loop(end, start=begin, step=_LANES) as first:
        rows = [first + lane for lane in range(_LANES)]
        forest.walk(rows, [tree] * _LANES)


def _trees_beside(k: Kernel, forest: _Forest, row: Num) -> None:
    count = forest.roots.size
    whole = count - count % _LANES
    with k.loop(whole, step=_LANES) as first:
        forest.walk([row] * _LANES, [first + lane for lane in range(_LANES)])
    with k.loop(count, start=whole) as tree:
        forest.walk([row], [tree])


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
