"""Speedup by tuning: models on the host alone, untuned and tuned, in pairs by processor time.

    python benchmarks/tuning.py small mobilenet_v2 vit_tiny --seconds 60

Each model is tuned, and compiled with a calibration file that has the results of tuning, and with
the same file without them. `small` has six 3x3 convolutions of 32 to 128 channels for images of 32
x 32.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import models
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.calibration import write_calibration
from byoc_mlir.compiler.calibration import calibration_of, process_choices
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.tuning.tune import tune_model

PAIRS, PAIR_SECONDS = 31, 0.05


def small_network() -> onnx.ModelProto:
    """Returns two convolutions at each of three sizes, with a pool after each pair."""
    generator = np.random.default_rng(0)
    weights: list[TensorProto] = []
    nodes: list[onnx.NodeProto] = []
    last, channels = "x", 3
    for number, outputs in enumerate((32, 32, 64, 64, 128, 128)):
        array = generator.standard_normal((outputs, channels, 3, 3)) / np.sqrt(9 * channels)
        weights.append(numpy_helper.from_array(array.astype(np.float32), f"w{number}"))
        window: dict[str, Any] = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
        nodes.append(helper.make_node("Conv", [last, f"w{number}"], [f"c{number}"], **window))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        last, channels = f"r{number}", outputs
        if number % 2:
            pool: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
            nodes.append(helper.make_node("MaxPool", [last], [f"p{number}"], **pool))
            last = f"p{number}"
    nodes.append(helper.make_node("GlobalAveragePool", [last], ["y"]))
    for number, node in enumerate(nodes):
        node.name = f"{node.op_type}{number}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 128, 1, 1])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def measure(name: str, seconds: float, folder: Path) -> float:
    """Tunes a model; prints and returns its time relative to the untuned one."""
    if name == "small":
        path = folder / "small.onnx"
        onnx.save(small_network(), path)
    else:
        path, _ = models.write_model(name, folder)
    process_choices()
    request = Request(path, targets=(), threads=1, fallback="allow")
    start, begin = time.perf_counter(), time.process_time()
    tuning = tune_model(request, seconds)
    took, worked = time.perf_counter() - start, time.process_time() - begin
    known = calibration_of(None).as_json()
    untuned_calibration = {key: one for key, one in known.items() if not key.startswith("tuned/")}
    write_calibration(calibration_of(known), folder / "tuned.json")
    write_calibration(calibration_of(untuned_calibration), folder / "untuned.json")
    tuned, untuned = (
        byoc_mlir.compile(
            path, (), 1, fallback="allow", calibration=folder / f"{kind}.json", cache=False
        )
        for kind in ("tuned", "untuned")
    )
    generator = np.random.default_rng(0)
    shapes = {one.name: [int(size) for size in one.shape] for one in tuned.inputs}
    inputs = {
        one.name: generator.standard_normal(shapes[one.name]).astype(one.dtype)
        for one in tuned.inputs
    }
    ratio = paired(tuned, untuned, inputs)
    print(
        f"{name}: {ratio:.3f} of untuned; {tuning.variants} variants, {worked:.0f} s of the"
        f" processor, {took:.0f} s; {tuning.reason or f'search says {tuning.ratio:.3f}'}",
        flush=True,
    )
    return ratio


def paired(tuned: Any, untuned: Any, inputs: Any) -> float:
    """Returns the median ratio of times over pairs of short runs."""

    def seconds(executable: Any, runs: int) -> float:
        start = time.thread_time()
        for _ in range(runs):
            executable.run(inputs)
        return time.thread_time() - start

    runs = max(1, round(PAIR_SECONDS / max(seconds(untuned, 3) / 3, 1e-6)))
    return statistics.median(seconds(tuned, runs) / seconds(untuned, runs) for _ in range(PAIRS))


def main() -> None:
    """Measures each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["small", "mobilenet_v2", "vit_tiny"])
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ratios = [measure(name, args.seconds, Path(folder)) for name in args.names]
    mean = statistics.geometric_mean(ratios)
    print(json.dumps({"geometric mean": round(mean, 3)}))


if __name__ == "__main__":
    main()
