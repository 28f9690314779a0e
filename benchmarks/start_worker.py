"""Worker for one start: a process that reads a model, compiles or loads it, and runs it once.

`start_worker.py KIND PATH INPUTS THREADS` prints one JSON line with `Start`; kinds are `first`,
`cached` and `load`.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from importlib import import_module

_LIBRARIES = (
    "numpy",
    "onnx",
    "llvmlite.binding",
    "xdsl.ir",
    "xdsl.pattern_rewriter",
    "xdsl.dialects.builtin",
    "xdsl.dialects.llvm",
)
"""Parts of libraries that each compilation needs."""


@dataclass(frozen=True)
class Start:
    """Durations of the parts of a start, in seconds."""

    read: float
    """One pass over the file, which is separate from the other parts."""
    libraries: float
    """Import of NumPy, ONNX, llvmlite and xDSL by a first process; 0 for others."""
    imports: float
    """Import of the package; the compiler's own imports happen while it compiles."""
    compiling: float
    """Compilation or loading, without calibration."""
    first_run: float
    calibration: float
    """Calibration of the machine, which its first processes measure."""
    peak_megabytes: float

    @property
    def beyond(self) -> float:
        """Returns the time from the file to the first output, without libraries and calibration."""
        return self.imports + self.compiling + self.first_run


def main() -> None:
    """Measures one start and prints it as JSON."""
    kind, path, inputs_path, threads = sys.argv[1:]
    libraries = _import_libraries() if kind == "first" else 0.0
    import numpy as np
    from worker import peak_megabytes

    with np.load(inputs_path) as stored:
        inputs = dict(stored)
    marks = [time.perf_counter()]
    with open(path, "rb") as file:
        while file.read(1 << 20):
            pass
    marks.append(time.perf_counter())
    import byoc_mlir

    load, compile_ = byoc_mlir.load, byoc_mlir.compile
    marks.append(time.perf_counter())
    if kind == "load":
        executable = load(path, threads=int(threads))
    else:
        executable = compile_(path, threads=int(threads), fallback="allow")
    marks.append(time.perf_counter())
    executable.run(inputs)
    marks.append(time.perf_counter())
    read, imports, compiling, first_run = np.diff(marks).tolist()
    calibration = _calibration() if kind != "load" else 0.0
    start = Start(
        read,
        libraries,
        imports,
        compiling - calibration,
        first_run,
        calibration,
        peak_megabytes(),
    )
    print(json.dumps(asdict(start)))


def _import_libraries() -> float:
    """Imports the libraries of the compiler; returns the seconds."""
    start = time.perf_counter()
    for name in _LIBRARIES:
        import_module(name)
    return time.perf_counter() - start


def _calibration() -> float:
    from byoc_mlir.compiler.calibration import process_calibration

    return process_calibration().seconds


if __name__ == "__main__":
    main()
