"""Cost of a shape-polymorphic program, compared with a specialised one and ONNX Runtime.

    python benchmarks/dynamic.py                                    ResNet-18 and U-Net
    python benchmarks/dynamic.py mobilenet_v2 --sizes 1x224x224     one size
    python benchmarks/dynamic.py unet --threads 2                   on two threads
    python benchmarks/dynamic.py encoder --sizes 1x16 1x512 --targets dnnl --int8

The shape-polymorphic program is the host's, and compiled at the first size; `--targets` are those
of the specialised ones. Ratios are of the processor's time, medians of rounds in which all three
are interleaved.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import onnx
from engines.onnxruntime import Engine
from models import quantise
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.backends import split_targets
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.encoder import encoder, symbolised
from byoc_mlir.testing.reference import random_inputs

_AXES = {0: "batch", 2: "height", 3: "width"}
"""Symbolic dimensions of the first input, as far as it has them."""

_SIZES = ("1x224x224", "2x160x192")

_ENCODER = "encoder"

_ROUND_SECONDS = 0.05
"""Seconds of the shape-polymorphic program in one round; the others run as often."""

_TICK_SECONDS = 1e-6

_Run: TypeAlias = Callable[[dict[str, Any]], object]


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["resnet18", "unet"], metavar="MODEL")
    parser.add_argument("--sizes", nargs="+", default=_SIZES, metavar="NxHxW")
    parser.add_argument("--targets", default="", help="of specialised programs; default: the host")
    parser.add_argument("--int8", action="store_true", help="quantise at the first size")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if unknown := {*arguments.models} - {_ENCODER, *NETWORKS}:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    print("| model | sizes | first call, s | program for these, s | to that | to ONNX Runtime |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in arguments.models:
        _measure(name, arguments)


def _measure(name: str, arguments: argparse.Namespace) -> None:
    """Prints a row for each size."""
    model, threads = _symbolic(name), arguments.threads
    all_dims = [_dims(model, text) for text in arguments.sizes]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString())
        if arguments.int8:
            quantise(model, path, all_dims[0])
            model = onnx.load(path)
        session = Engine(path, threads, "f32")
        with byoc_mlir.compile(model, (), threads, cache=False) as executable:
            for text, dims in zip(arguments.sizes, all_dims, strict=True):
                cells = _cells(model, dims, executable.run, session.run, arguments)
                print(f"| `{name}` | {text} | {cells} |", flush=True)


def _cells(
    model: ModelProto,
    dims: dict[str, int],
    dynamic: _Run,
    peer: _Run,
    arguments: argparse.Namespace,
) -> str:
    """Returns the cells of a size."""
    inputs = random_inputs(model, dims=dims)
    first = _seconds(lambda: dynamic(inputs))
    start = time.process_time()
    targets, threads = split_targets(arguments.targets), arguments.threads
    with byoc_mlir.compile(
        _at(model, dims), targets, threads, cache=False, fallback="allow"
    ) as fixed:
        fixed.run(inputs)
        compiled = time.process_time() - start
        count = math.ceil(_ROUND_SECONDS / max(_seconds(lambda: dynamic(inputs)), _TICK_SECONDS))
        turns = [
            [_mean_seconds(run, inputs, count) for run in (dynamic, fixed.run, peer)]
            for _ in range(arguments.rounds)
        ]
    to_fixed, to_peer = (
        statistics.median(own / one[number] for own, *one in turns) for number in (0, 1)
    )
    return f"{first:.2f} | {compiled:.2f} | {to_fixed:.2f} | {to_peer:.2f}"


def _symbolic(name: str) -> ModelProto:
    """Returns a network whose first input has symbolic dimensions."""
    if name == _ENCODER:
        return encoder(width=384, heads=12, layers=6)
    model = NETWORKS[name]()
    data = model.graph.input[0]
    rank = len(data.type.tensor_type.shape.dim)
    return symbolised(model, {data.name: {axis: _AXES[axis] for axis in _AXES if axis < rank}})


def _dims(model: ModelProto, text: str) -> dict[str, int]:
    """Returns the sizes of the first input's symbols, in order, from `2x160x192`."""
    shape = model.graph.input[0].type.tensor_type.shape
    names = [size.dim_param for size in shape.dim if size.dim_param]
    return dict(zip(names, map(int, text.split("x")), strict=True))


def _at(model: ModelProto, dims: dict[str, int]) -> ModelProto:
    """Returns the model with static sizes."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param:
                size.dim_value = dims[size.dim_param]
    return copy


def _mean_seconds(run: _Run, inputs: dict[str, Any], count: int) -> float:
    """Returns the mean processor time of `count` calls in seconds, after one more call."""
    run(inputs)
    return _seconds(lambda: [run(inputs) for _ in range(count)]) / count


def _seconds(run: Callable[[], object]) -> float:
    """Returns the processor time of a call in seconds."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
