"""Tree ensembles compared with ONNX Runtime, from one row to a thousand.

    python benchmarks/trees.py                                 regressors and classifiers, 1 thread
    python benchmarks/trees.py --rows 1 10 --batch fixed --threads 1 2 --kinds classifier
    python benchmarks/trees.py --forests 100x8 --ends 0.2 --arrays 1

A forest is `trees x depth`, random splits of random features; `--ends` is the probability that a
node is a leaf before that depth. Both engines get the same arrays interleaved, in one process.
Times are microseconds of a call from Python, of the processor with one thread and of the clock with
more: the lowest tenth of the turns. With `--arrays 1` the same rows are repeated: the branch
predictor learns their paths, which helps an engine that branches. A batch is of symbolic size, or
fixed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from statistics import quantiles
from typing import Any, cast

import numpy as np
import onnxruntime
from onnx import ModelProto, TensorProto, helper

import byoc_mlir
from byoc_mlir.testing.reference import largest_relative_error

Array = np.ndarray[Any, np.dtype[Any]]
Engine = Callable[[dict[str, Array]], Array]

_FEATURES, _CLASSES = 30, 3
_TURN_SECONDS = 0.002
"""Approximate duration of one engine's turn."""


@dataclass(frozen=True)
class Forest:
    """Number of trees and their depth."""

    trees: int
    depth: int

    @staticmethod
    def parsed(text: str) -> Forest:
        """Parses a forest written as `300x6`."""
        trees, depth = map(int, text.split("x"))
        return Forest(trees, depth)


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    forests = [Forest(300, 6), Forest(100, 10), Forest(20, 4)]
    parser.add_argument("--forests", type=Forest.parsed, nargs="+", default=forests)
    parser.add_argument("--kinds", nargs="+", choices=_KINDS, default=tuple(_KINDS))
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--batch", choices=("symbolic", "fixed"), default="symbolic")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--ends", type=float, default=0.0, help="share of nodes that are leaves")
    parser.add_argument("--arrays", type=int, default=64, help="different inputs")
    parser.add_argument("--turns", type=int, default=40)
    options = parser.parse_args()
    print("| kind | forest | threads | rows | ours, us | ONNX Runtime, us | ratio | error |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind, forest, threads in product(options.kinds, options.forests, options.threads):
        model = partial(_model, kind, forest, options.ends)
        for rows in options.rows:
            sizes = rows if options.batch == "fixed" else "n"
            found = _compared(model(sizes), rows, threads, options)
            name = f"{forest.trees}x{forest.depth}"
            print(f"| {kind} | {name} | {threads} | {rows} | {found} |", flush=True)


def _model(kind: str, forest: Forest, ends: float, rows: int | str) -> ModelProto:
    """Returns a model of one node with random trees."""
    attributes, outputs = _KINDS[kind](_Grown(forest, ends))
    node = helper.make_node(
        f"TreeEnsemble{kind.capitalize()}",
        ["x"],
        [name for name, _ in outputs],
        domain="ai.onnx.ml",
        **attributes,
    )
    graph = helper.make_graph(
        [node],
        "trees",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, _FEATURES])],
        [helper.make_tensor_value_info(name, type_, None) for name, type_ in outputs],
    )
    opsets = [helper.make_opsetid("ai.onnx.ml", 3), helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


class _Grown:
    """Lists of the nodes and leaves of a random forest."""

    def __init__(self, forest: Forest, ends: float):
        self._rng, self._depth, self._ends = np.random.default_rng(0), forest.depth, ends
        self.nodes: list[dict[str, Any]] = []
        self.leaves: list[tuple[int, int]] = []
        for tree in range(forest.trees):
            self._grow(tree, len(self.nodes), 0)

    def _grow(self, tree: int, root: int, level: int) -> int:
        place = len(self.nodes)
        is_leaf = level == self._depth or (level > 0 and self._rng.random() < self._ends)
        node: dict[str, Any] = {
            "treeids": tree,
            "nodeids": place - root,
            "modes": "LEAF" if is_leaf else "BRANCH_LEQ",
            "featureids": 0 if is_leaf else int(self._rng.integers(_FEATURES)),
            "values": 0.0 if is_leaf else float(self._rng.standard_normal()) / 2,
            "truenodeids": 0,
            "falsenodeids": 0,
        }
        self.nodes.append(node)
        if is_leaf:
            self.leaves.append((tree, place - root))
            return place - root
        for branch in ("truenodeids", "falsenodeids"):
            node[branch] = self._grow(tree, root, level + 1)
        return place - root

    def attributes(self, kind: str, targets: int) -> dict[str, Any]:
        """Returns the attributes of a node; each leaf has weights for all targets."""
        nodes = {f"nodes_{name}": [node[name] for node in self.nodes] for name in self.nodes[0]}
        trees, places = (np.repeat(each, targets) for each in zip(*self.leaves, strict=True))
        weights = self._rng.standard_normal(len(trees)).astype(np.float32)
        leaves = {"treeids": trees, "nodeids": places, "weights": weights}
        leaves["ids"] = np.tile(np.arange(targets), len(self.leaves))
        return {**nodes, **{f"{kind}_{name}": each.tolist() for name, each in leaves.items()}}


def _regressor(grown: _Grown) -> tuple[dict[str, Any], Sequence[tuple[str, int]]]:
    return {**grown.attributes("target", 1), "n_targets": 1}, [("y", TensorProto.FLOAT)]


def _classifier(grown: _Grown) -> tuple[dict[str, Any], Sequence[tuple[str, int]]]:
    labels = list(range(_CLASSES))
    attributes = grown.attributes("class", _CLASSES)
    outputs = [("label", TensorProto.INT64), ("scores", TensorProto.FLOAT)]
    return {**attributes, "classlabels_int64s": labels}, outputs


_KINDS = {"regressor": _regressor, "classifier": _classifier}


def _compared(model: ModelProto, rows: int, threads: int, options: argparse.Namespace) -> str:
    rng = np.random.default_rng(rows)
    inputs = [
        {"x": rng.standard_normal((rows, _FEATURES)).astype(np.float32)}
        for _ in range(options.arrays)
    ]
    clock = time.thread_time if threads == 1 else time.perf_counter
    with byoc_mlir.compile(model, threads=threads) as executable:
        engines = (_ours(executable), _peer(model, threads))
        error = max(
            largest_relative_error(*(engine(each) for engine in engines)) for each in inputs
        )
        turns = [
            [_microseconds(engine, inputs, clock) for engine in engines]
            for _ in range(options.turns)
        ]
    ours, peer = (quantiles(times, n=10)[0] for times in zip(*turns, strict=True))
    return f"{ours:.1f} | {peer:.1f} | {ours / peer:.2f} | {error:.0e}"


def _microseconds(
    engine: Engine, inputs: Sequence[dict[str, Array]], clock: Callable[[], float]
) -> float:
    """Returns the microseconds of a call, the mean over the inputs."""
    calls, begin = 0, clock()
    while (taken := clock() - begin) < _TURN_SECONDS:
        for each in inputs:
            engine(each)
        calls += len(inputs)
    return taken / calls * 1e6


def _ours(executable: byoc_mlir.Executable) -> Engine:
    return lambda inputs: list(executable.run(inputs).values())[-1]


def _peer(model: ModelProto, threads: int) -> Engine:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return lambda inputs: cast(Array, session.run(None, inputs)[-1])


if __name__ == "__main__":
    main()
