"""Compile time of a further batch size for a model with a symbolic batch, compiled in this process
before.

    python benchmarks/shapes.py                                 ResNet-18 and MobileNet V2
    python benchmarks/shapes.py squeezenet --targets '' -b 1 4 8    the host alone

Times are of the processor: compiling and loading, without a run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import onnx
from models import known_models

import byoc_mlir
from byoc_mlir.backends import split_targets
from byoc_mlir.testing.networks import NETWORKS


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=["resnet18", "mobilenet_v2"], metavar="MODEL")
    parser.add_argument("--targets", help="default: those of compile")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-b", "--batches", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    if unknown := {*arguments.models} - {*known_models()}:
        parser.error(f"unknown models: {', '.join(sorted(unknown))}")
    targets = None if arguments.targets is None else split_targets(arguments.targets)
    batches: list[int] = arguments.batches
    print(f"| seconds | {' | '.join(f'batch {batch}' for batch in batches)} |")
    print(f"| --- |{' ---: |' * len(batches)}")
    for name in arguments.models:
        compile_seconds(name, batches[:1], targets, arguments.threads)  # imports the compiler
        rounds = [
            compile_seconds(name, batches, targets, arguments.threads)
            for _ in range(arguments.rounds)
        ]
        least = [min(seconds) for seconds in zip(*rounds, strict=True)]
        print(f"| `{name}` | {' | '.join(f'{seconds:.2f}' for seconds in least)} |")


def compile_seconds(
    name: str, batches: Sequence[int], targets: Sequence[str] | None, threads: int
) -> list[float]:
    """Returns the compile time of each batch size, one after the other."""
    model = NETWORKS[name]()
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].CopyFrom(
            onnx.TensorShapeProto.Dimension(dim_param="batch")
        )
    found: list[float] = []
    with byoc_mlir.compile(model, targets, threads, fallback="allow", cache=False) as executable:
        for batch in batches:
            shapes = {
                info.name: (batch, *(int(size) for size in info.shape[1:]))
                for info in executable.inputs
            }
            start = time.process_time()
            executable.warmup(shapes)
            found.append(time.process_time() - start)
    return found


if __name__ == "__main__":
    main()
