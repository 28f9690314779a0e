"""Growth of compile time with the size of a model, by pass.

    python benchmarks/growth.py                      oneDNN regions alternating with host loops
    python benchmarks/growth.py --targets '' -n 80   the host alone, 80, 160 and 320 layers

A layer is a matmul, an addition, a sine, a transpose and a softmax: backends that have no sine get
one region for each layer. Times are of the processor, the least of some compilations.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.backends import split_targets

_WIDTH = 64
_LEAST_SECONDS = 0.02
"""Time in seconds below which passes have no row."""


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, default=20, help="layers of the smallest of three models")
    parser.add_argument("--targets", default="dnnl")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    counts = [arguments.n * factor for factor in (1, 2, 4)]
    targets = split_targets(arguments.targets)
    with mock.patch("time.perf_counter", time.process_time):
        compile_seconds(1, targets)  # imports the compiler
        times = [
            least([compile_seconds(count, targets) for _ in range(arguments.rounds)])
            for count in counts
        ]
    print(f"| seconds | {' | '.join(f'{count} layers' for count in counts)} | growth |")
    print("| --- | ---: | ---: | ---: | ---: |")
    rows = {name: [time.get(name, 0.0) for time in times] for name in times[-1]}
    for name, (one, two, four) in sorted(rows.items(), key=lambda row: -row[1][-1]):
        if four >= _LEAST_SECONDS:
            growth = f"{two / one:.1f}, {four / two:.1f}"
            print(f"| {name} | {one:.3f} | {two:.3f} | {four:.3f} | {growth} |")


def compile_seconds(count: int, targets: Sequence[str]) -> dict[str, float]:
    """Returns the time of each pass, and of all passes."""
    compiled = byoc_mlir.compile(chain(count), targets=targets, fallback="allow", cache=False)
    with compiled as executable:
        passes = dict(executable.report().pass_seconds)
    return {"all": sum(passes.values()), **passes}


def least(times: Sequence[dict[str, float]]) -> dict[str, float]:
    """Returns the least time of each pass."""
    return {name: min(time[name] for time in times) for name in times[0]}


def chain(count: int) -> onnx.ModelProto:
    """Returns a model of `count` layers."""
    generator = np.random.default_rng(0)
    nodes, weights, value = list[onnx.NodeProto](), list[TensorProto](), "x"
    for layer in range(count):
        for name, shape in (("w", (_WIDTH, _WIDTH)), ("b", (_WIDTH,))):
            array = generator.standard_normal(shape).astype(np.float32) / 8
            weights.append(numpy_helper.from_array(array, f"{name}{layer}"))
        nodes += [
            helper.make_node("MatMul", [value, f"w{layer}"], [f"product{layer}"]),
            helper.make_node("Add", [f"product{layer}", f"b{layer}"], [f"sum{layer}"]),
            helper.make_node("Sin", [f"sum{layer}"], [f"sine{layer}"]),
            helper.make_node("Transpose", [f"sine{layer}"], [f"turned{layer}"], perm=[1, 0]),
            helper.make_node("Softmax", [f"turned{layer}"], [f"out{layer}"]),
        ]
        value = f"out{layer}"
    shape = [_WIDTH, _WIDTH]
    tensors = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("x", value)]
    graph = helper.make_graph(nodes, "chain", tensors[:1], tensors[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


if __name__ == "__main__":
    main()
