"""C programs for aarch64 that run a model, and `qemu-user`, which runs them on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.tensors import TensorInfo

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

TRIPLE = "aarch64-linux-gnu"
_SYSTEM = Path("/usr") / TRIPLE
"""Folder of the C library and libgomp in the cross compiler's package."""

_MAIN = """
#include <stdio.h>
#include "model.h"
DECLARED
int main(void) {
  int status = model_init(0);
  if (READ) return 100;
  if (status == 0) status = model_run(ARGUMENTS);
  if (status != 0) fprintf(stderr, "%s", model_error());
  WRITTEN
  model_shutdown();
  return status;
}
"""


def run_on_aarch64(
    folder: Path, inputs: Mapping[str, Array], outputs: Sequence[TensorInfo], sizes: Sequence[int]
) -> dict[str, Array]:
    """Compiles a C program for the model in a folder, and runs it.

    Args:
        folder: has `model.o` or `model.so`, and `model.h`.
        outputs: the model's outputs for these inputs, for their types and shapes.
        sizes: arguments of the C function before the tensors.
    """
    given = [(f"in_{number}", array.nbytes) for number, array in enumerate(inputs.values())]
    wanted = [
        (f"out_{number}", int(np.prod(spec.static_shape)) * spec.dtype.itemsize)
        for number, spec in enumerate(outputs)
    ]
    names = [f"(void *){name}" for name, _ in (*given, *wanted)]
    text = _MAIN
    for word, found in {
        "DECLARED": "\n".join(
            f"static _Alignas(16) char {name}[{size}];" for name, size in (*given, *wanted)
        ),
        "READ": " || ".join(f"fread({name}, {size}, 1, stdin) != 1" for name, size in given),
        "ARGUMENTS": ", ".join([*map(str, sizes), *names]),
        "WRITTEN": " ".join(f"fwrite({name}, {size}, 1, stdout);" for name, size in wanted),
    }.items():
        text = text.replace(word, found)
    (folder / "main.c").write_text(text)
    (model,) = folder.glob("model.*o")
    flags = ["-std=c11", "-Wall", "-Werror", "-lm", "-ldl", "-pthread", "-Wl,-rpath,$ORIGIN"]
    command = [f"{TRIPLE}-gcc", "main.c", model.name, *flags, "-o", "main"]
    subprocess.run(command, cwd=folder, check=True)
    result = subprocess.run(
        ["qemu-aarch64", "-L", _SYSTEM, "./main"],
        cwd=folder,
        input=b"".join(array.tobytes() for array in inputs.values()),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()
    found, start = dict[str, Array](), 0
    for spec, (_, size) in zip(outputs, wanted, strict=True):
        part = result.stdout[start : start + size]
        found[spec.name] = np.frombuffer(part, spec.dtype).reshape(spec.static_shape)
        start += size
    return found


def differences(
    folder: Path,
    model: ModelProto,
    inputs: Mapping[str, Array],
    *,
    sizes: Sequence[int] = (),
    threads: int = 2,
    file: str = "model.o",
) -> dict[str, float]:
    """Returns the largest difference between aarch64 and this machine's host compiler for each
    output, relative to the output's largest element.
    """
    shapes = None if sizes else {name: array.shape for name, array in inputs.items()}
    byoc_mlir.cross_compile(model, folder / file, TRIPLE, shapes=shapes, threads=threads)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        expected = executable.run(inputs)
    specs = [TensorInfo(name, array.dtype, array.shape) for name, array in expected.items()]
    found = run_on_aarch64(folder, inputs, specs, sizes)
    return {name: _difference(found[name], array) for name, array in expected.items()}


def _difference(found: Array, expected: Array) -> float:
    largest = float(np.abs(expected, dtype=np.float64).max()) or 1.0
    return float(np.abs(found.astype(np.float64) - expected).max()) / largest
