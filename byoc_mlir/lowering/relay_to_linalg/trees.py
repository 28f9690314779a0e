"""Decision trees as one kernel: several walks at a time, and no branch in a step.

A walk from the root to a leaf is a chain of dependent loads. So the kernel evaluates all nodes of
the first levels of a tree for many rows at once, and selects by the results: this reads features
sequentially and in vectors. Below these levels, eight walks are interleaved; after every few steps,
rows that have reached a leaf are dropped. If there are few rows, each row goes through many
interleaved trees; with a symbolic number of rows, each call chooses. The fields of a node that a
step reads are contiguous. Interleaved walks are not vectorised: a step would consist of dependent
gathers, which take twice as long as single loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects.relay import ml as relay
from byoc_mlir.dialects.relay.base import Tensor, sizes_of, tensor_of, tensor_type
from byoc_mlir.dialects.relay.constant import ConstantOp
from byoc_mlir.dims import Dim, Size, ceildiv
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import INDEX, Buffer, Index, Kernel, Num, Variable
from byoc_mlir.tensors import Array

_FEW_ROWS = 16
"""Minimum number of rows for the kernel that processes many rows at once. It is also the length of
the vectors to which the rows of features are padded."""
_LANES = 8
_TREES = 16
"""Interleaved trees for one row."""
_CHUNK = 256
"""Rows that go through a tree before the next tree; so a tree stays in the cache."""
_LEVELS = 4
"""Maximum number of levels of which all nodes are evaluated: 15 nodes, where a walk would evaluate
four."""
_PHASE = 6
"""Steps after which rows that have reached a leaf are dropped."""

_STARTS = {"sum": 0.0, "min": float("inf"), "max": float("-inf")}


@dataclass(frozen=True)
class _Tables:
    """Constants of an ensemble, in the order in which the kernel reads them."""

    roots: Array
    depths: Array
    nodes: Array
    """Nodes `[M, 2]`: the bits of the threshold, and `left << feature_bits | feature`."""
    feature_bits: int
    leaves: Array
    """Leaf of each node, as an index of `weights`; if `weights` has one weight per node, the node's
    target."""
    weights: Array
    """Weights `[L, W]`, or one weight per node if each leaf has one weight."""

    @property
    def is_single(self) -> bool:
        """True if each leaf has one weight."""
        return self.weights.ndim == 1


@dataclass(frozen=True)
class _Tops:
    """First levels of all trees, as complete binary trees: the nodes below a leaf are copies of
    it.
    """

    features: Array
    """Features `[trees, 2 ** levels - 1]`: the children of node `n` are `2 * n + 1` and
    `2 * n + 2`."""
    thresholds: Array
    ends: Array
    """Nodes of the ensemble below the first levels, `[trees, 2 ** levels]`."""

    @property
    def count(self) -> int:
        """Returns the number of nodes of a tree in these levels."""
        return self.features.shape[1]

    @staticmethod
    def of(op: relay.TreeEnsembleOp) -> _Tops:
        """Returns the first levels of an ensemble; as many levels as pay."""
        operands = [_constant(op, value) for value in op.operands[1:6]]
        nodes, depths, lefts, features, thresholds = operands
        nodes, found = nodes[:, None], [np.empty((len(nodes), 0), np.int64)]
        for _ in range(min(_LEVELS, int(depths.max(initial=0)))):
            found.append(nodes)
            left, is_leaf = lefts[nodes], np.isnan(thresholds[nodes])
            nodes = np.stack([left, left + ~is_leaf], 2).reshape(len(nodes), -1)
        asked = np.concatenate(found, 1)
        ends = nodes.astype(np.int32)
        return _Tops(features[asked].astype(np.int32), thresholds[asked], ends)


class _Forest:
    """Tables of an ensemble, as buffers of its kernel."""

    def __init__(self, op: relay.TreeEnsembleOp, tables: _Tables, k: Kernel):
        self.k = k
        self.aggregate = op.aggregate.data
        self.feature_bits = tables.feature_bits
        self.is_single = tables.is_single
        self.data, self.roots, self.depths, self.nodes, self.leaves, self.weights, *others = (
            k.inputs
        )
        self.firsts = None if tables.is_single else others[0]
        (self.output,) = k.outputs

    def left(self, node: Num) -> tuple[Num, Num]:
        """Returns the left child of a node, or the node itself if it is a leaf, and the node's
        feature.
        """
        link = self.nodes[node, 1]
        mask = self.k.constant(2**self.feature_bits - 1, link.type)
        return link.shifted_right(self.feature_bits), link & mask

    def step(self, row: Num, node: Num) -> Num:
        """Emits the step of a row from a node to its child."""
        threshold = self.nodes[node, 0].bits_as(self.data.type)
        left, feature = self.left(node)
        is_right = self.data[row, feature.to(INDEX)] <= threshold
        return left.to(INDEX) + is_right.to(i32).to(INDEX)

    def walk(self, row: Num, trees: Sequence[Num]) -> None:
        """Emits the walk of one row through several trees; the last tree is the deepest."""
        k = self.k
        nodes = [k.variable(self.roots[tree].to(INDEX)) for tree in trees]
        with k.loop(self.depths[trees[-1]].to(INDEX)):
            for variable in nodes:
                variable.value = self.step(row, variable.value)
        for variable in nodes:
            self.add(row, variable.value)

    def add(self, row: Num, node: Num) -> None:
        """Adds the weights of the leaf at which a walk ended."""
        if self.is_single:
            target = self.leaves[node].to(INDEX) if self.output.sizes[1] != 1 else 0
            self._combine((row, target), self.weights[node])
            return
        place = self.leaves[node].to(INDEX)
        assert self.firsts is not None
        with self.k.loop(self.weights.sizes[1]) as offset:
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
    """Walks of many rows through one tree at a time.

    Args:
        tops: the tables of `_Tops`.
        columns: memory for the transposed data, `[features, rows]`, padded to whole vectors of
            rows.
    """

    def __init__(self, forest: _Forest, tops: Sequence[Buffer], columns: Buffer):
        self._forest = forest
        self._k = k = forest.k
        self._features, self._thresholds, self._tops = tops
        self._columns = columns
        self._ends = k.stack(_CHUNK, i32)
        """Node that each row has reached."""
        self._rows, self._places = k.stack(_CHUNK, i32), k.stack(_CHUNK, i32)
        """Rows that have not reached a leaf, and their nodes."""

    def through(self, tree: Num, begin: Num, count: Num) -> None:
        """Emits the walks of `count` rows from `begin` on through a tree."""
        k, forest = self._k, self._forest
        depth = forest.depths[tree].to(INDEX)
        self._ask(tree, begin, count)
        with k.when(depth > _LEVELS):
            self._on(begin, count, depth - _LEVELS)
        with k.loop(count) as number:
            forest.add(begin + number, self._ends[number].to(INDEX))

    def turn(self, begin: Num, count: Num) -> None:
        """Transposes `count` rows from `begin` on."""
        features, rows = self._columns.sizes
        columns = self._columns.reshaped(features * rows)
        with self._k.loop(features) as feature, self._k.loop(count) as number:
            columns[feature * rows + begin + number] = self._forest.data[begin + number, feature]

    def _ask(self, tree: Num, begin: Num, count: Num) -> None:
        """Evaluates all nodes of the first levels, and selects the node at which each row's walk
        continues.
        """
        features, rows = self._columns.sizes
        columns, asked = self._columns.reshaped(features * rows), range(self._features.shape[1])
        places = [self._features[tree, node].to(INDEX) * rows + begin for node in asked]
        thresholds = [self._thresholds[tree, node] for node in asked]
        ends = [self._tops[tree, end] for end in range(self._tops.shape[1])]

        def chosen(node: int, number: Num) -> Num:
            if node >= len(places):
                return ends[node - len(places)]
            is_right = columns[places[node] + number] <= thresholds[node]
            left, right = (chosen(2 * node + side, number) for side in (1, 2))
            return self._k.select(is_right, right, left)

        k = self._k
        with k.loop(count, step=_FEW_ROWS) as first, k.loop(_FEW_ROWS) as lane:
            self._ends[first + lane] = chosen(0, first + lane)  # what is behind the rows, too

    def _on(self, begin: Num, count: Num, depth: Num) -> None:
        """Emits the remaining steps of the walks, down to the leaves."""
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
        """Adds a row to the rows that still walk, if it has not reached a leaf."""
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
    rows, features = sizes_of(op.data)
    may_be_many = isinstance(rows, Dim) or rows >= _FEW_ROWS
    scratch: list[Tensor] = []
    if may_be_many:
        tops = _Tops.of(op)
        named = (tops.features, tops.thresholds, tops.ends)
        operands += [b.constant(array, "tops") for array in named]
        scratch = [tensor_of(tensor_type(op.data).element_type, [features, _whole(rows)])]
    k = Kernel(op, operands, scratch=scratch, prefer_no_gather=True)
    forest = _Forest(op, tables, k)
    cost = _CHUNK if isinstance(rows, Dim) else min(rows, _CHUNK)
    cost *= steps * ASSUMED.tree_step
    with k.loops([ceildiv(rows, _CHUNK)], cost=cost) as (chunk,):
        begin = k.index(chunk) * _CHUNK
        end = (begin + _CHUNK).min(rows)
        _clear(k, forest.output, begin, end, _STARTS[op.aggregate.data])
        if isinstance(rows, Dim):
            are_few = end - begin < _FEW_ROWS
            with k.when(are_few):
                _row_by_row(k, forest, begin, end)
            with k.when(~are_few):
                _rows_beside(k, forest, begin, end)
        elif may_be_many:
            _rows_beside(k, forest, begin, end)
        else:
            _row_by_row(k, forest, begin, end)
    return k.finish(b)


def _row_by_row(k: Kernel, forest: _Forest, begin: Num, end: Num) -> None:
    """Emits the walks of few rows: each row through many interleaved trees."""
    count = index(forest.roots.size)
    whole = count - count % _TREES
    with k.loop(end, start=begin) as row:
        with k.loop(whole, step=_TREES) as first:
            forest.walk(row, [first + lane for lane in range(_TREES)])
        if whole < count:
            forest.walk(row, [k.index(tree) for tree in range(whole, count)])


def _rows_beside(k: Kernel, forest: _Forest, begin: Num, end: Num) -> None:
    """Emits the walks of many rows, interleaved, through one tree after the other."""
    walks = _Walks(forest, k.inputs[-3:], k.scratch[0])
    walks.turn(begin, end - begin)
    with k.loop(forest.roots.size) as tree:
        walks.through(tree, begin, end - begin)


def _whole(rows: Size) -> Size:
    """Rounds a number of rows up to whole vectors."""
    return ceildiv(rows, _FEW_ROWS) * _FEW_ROWS


def _clear(k: Kernel, output: Buffer, begin: Num, end: Num, start: float) -> None:
    with k.loop(end, start=begin) as row, k.loop(output.sizes[1]) as target:
        output[row, target] = start


def _tables(op: relay.TreeEnsembleOp) -> _Tables:
    """Packs the constants, with the fields of a node that a step reads contiguous."""
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
    """Returns the total number of steps of a row's walks.

    Checks that no walk can read outside of the tables.

    Raises:
        PassFailedException: a table is not constant, or has an index out of range.
    """
    tables = [_constant(op, value) for value in op.operands[1:]]
    roots, depths, lefts, features, thresholds, leaves, firsts, weights = tables
    nodes, is_leaf = len(lefts), np.isnan(thresholds)
    last = lefts + ~is_leaf
    places = (
        ("roots", roots, nodes),
        ("lefts", np.append(lefts, last), nodes),
        ("features", features, index(sizes_of(op.data)[1])),
        ("leaves", leaves, weights.shape[0]),
        ("firsts", firsts + max(weights.shape[1] - 1, 0), op.targets.value.data),
        ("firsts", firsts, op.targets.value.data),
    )
    for what, found, size in places:
        if found.size and not (found.min() >= 0 and found.max() < size):
            raise PassFailedException(
                f"{op.name} at {op.location}: {what} has indices out of range"
            )
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
