"""Quick start: compiles an installed network, runs it, and prints the placement of every op.

python examples/quickstart.py [MODEL.onnx]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import onnx

import byoc_mlir
from byoc_mlir.testing.light import light_networks, with_random_weights
from byoc_mlir.testing.reference import random_inputs


def main() -> None:
    """Runs the example."""
    if len(sys.argv) > 1:
        model = onnx.load(Path(sys.argv[1]))
    else:
        model = with_random_weights(onnx.load(light_networks()["light_squeezenet"]))

    executable = byoc_mlir.compile(model)
    inputs = random_inputs(model)
    outputs = executable.run(inputs)

    for name, value in outputs.items():
        largest = np.unravel_index(np.argmax(value), value.shape)
        print(f"{name}: shape {value.shape}, largest value {value[largest]:.4f} at {largest}")

    print(executable.report())

    start = time.perf_counter()
    for _ in range(20):
        executable.run(inputs)
    print(f"{(time.perf_counter() - start) / 20 * 1e3:.2f} ms per run")


if __name__ == "__main__":
    main()
