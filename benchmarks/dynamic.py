"""Cost of a shape-polymorphic program, compared with a specialised one and ONNX Runtime.

    python benchmarks/dynamic.py                                    ResNet-18 and U-Net
    python benchmarks/dynamic.py mobilenet_v2 --sizes 1x224x224     one size
    python benchmarks/dynamic.py unet --threads 2                   on two threads

The host alone. Ratios are of the processor's time, medians of rounds in which all three are
interleaved; the shape-polymorphic program is compiled at the first size.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from engines.onnxruntime import Engine
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.encoder import symbolised
from byoc_mlir.testing.reference import random_inputs

_AXES = {0: "batch", 2: "height", 3: "width"}

_SIZES = ("1x224x224", "2x160x192")


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["resnet18", "unet"], metavar="MODEL")
    parser.add_argument("--sizes", nargs="+", default=_SIZES, metavar="NxHxW")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    if unknown := {*arguments.models} - NETWORKS.keys():
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    print("| model | images | first call, s | program for these, s | to that | to ONNX Runtime |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in arguments.models:
        _measure(name, arguments.sizes, arguments.threads, arguments.rounds)


def _measure(name: str, sizes: Sequence[str], threads: int, rounds: int) -> None:
    """Prints a row for each size."""
    model = symbolised(NETWORKS[name](), {"image": _AXES})
    with (
        tempfile.TemporaryDirectory() as folder,
        byoc_mlir.compile(model, (), threads, cache=False) as executable,
    ):
        path = Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString())
        session = Engine(path, threads, "f32")
        for text in sizes:
            dims = dict(zip(_AXES.values(), map(int, text.split("x")), strict=True))
            inputs = random_inputs(model, dims=dims)
            first = _seconds(lambda inputs=inputs: executable.run(inputs))
            start = time.process_time()
            with byoc_mlir.compile(_at(model, dims), (), threads, cache=False) as fixed:
                fixed.run(inputs)
                compiled = time.process_time() - start
                turns = [
                    [_seconds(lambda run=run, given=inputs: run(given)) for run in runs]
                    for runs in [(executable.run, fixed.run, session.run)] * rounds
                ]
            to_fixed, to_session = (
                statistics.median(own / one[number] for own, *one in turns) for number in (0, 1)
            )
            print(
                f"| `{name}` | {text} | {first:.2f} | {compiled:.2f} | {to_fixed:.2f}"
                f" | {to_session:.2f} |",
                flush=True,
            )


def _at(model: ModelProto, dims: dict[str, int]) -> ModelProto:
    """Returns the model with static sizes for its image."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param:
                size.dim_value = dims[size.dim_param]
    return copy


def _seconds(run: Callable[[], object]) -> float:
    """Returns the processor time of a call in seconds."""
    start = time.process_time()
    run()
    return time.process_time() - start


if __name__ == "__main__":
    main()
