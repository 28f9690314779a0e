"""Comparison of two engines on recorded models: their outputs and their speed.

A folder holds `model.onnx` and `0.npz`, `1.npz` …: the inputs of calls by name, the largest first.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
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

ENGINES = ("byoc", "onnxruntime")


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """Returns the parser for a script that compares models of packages in a separate
    environment."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="FOLDER",
        help="the packages' environment, reused if it is there; default: a temporary one",
    )
    add_measuring_options(parser)
    return parser


def environment(folder: Path, *installs: Sequence[str]) -> Path:
    """Returns the interpreter of the environment in `folder`, and creates the environment if it is
    not complete.

    Args:
        installs: arguments of `pip install`, one call after the other.
    """
    python, complete = folder / "bin" / "python", folder / "complete"
    if not complete.exists():
        venv.create(folder, with_pip=True)
        for arguments in installs:
            subprocess.run([python, "-m", "pip", "install", "--quiet", *arguments], check=True)
        complete.touch()
    return python


def compare(
    folders: Sequence[Path],
    threads: Sequence[int],
    rounds: int,
    quantile: float,
    tolerance: float,
) -> int:
    """Prints the times of both engines on each model's largest call, and the outputs that differ.

    Returns:
        0 if all outputs agree, else 1.
    """
    disagreements: list[str] = []
    results: list[Measurement | Failure] = []
    for folder in folders:
        disagreements += _disagreements(folder, tolerance)
        for result in _measure(folder, threads, rounds):
            show_progress(result)
            results.append(result)
    rows = rows_of(results, quantile)
    print(latency_table(rows, ENGINES))
    print("\nFrom file to first answer, and peak memory:\n")
    print(cost_table(rows, ENGINES))
    print("\n".join(disagreements) if disagreements else "\nAll answers agree.")
    return int(bool(disagreements) or any(isinstance(result, Failure) for result in results))


def record(python: Path, script: str, folder: Path, *arguments: str) -> None:
    """Runs a script of this folder in an environment; it writes the models to `folder`."""
    folder.mkdir()
    command = [python, Path(__file__).with_name(script), folder, *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def _disagreements(folder: Path, tolerance: float) -> Iterator[str]:
    """Yields one line for each recorded call that is refused or whose outputs differ."""
    model = (folder / "model.onnx").resolve()
    try:
        ours, theirs = Byoc(model, 1, "f32"), OnnxRuntime(model, 1, "f32")
        for call in sorted(folder.glob("[0-9].npz")):
            with np.load(call) as stored:
                inputs = {name: stored[name] for name in stored.files}
            assert_agrees(ours.run(inputs), theirs.run(inputs), tolerance)
    except (ByocError, AssertionError) as error:
        yield f"{folder.name}: {error}"


def _measure(folder: Path, threads: Sequence[int], rounds: int) -> Iterator[Measurement | Failure]:
    model = (folder / "model.onnx").resolve()
    files = ModelFiles(folder.name, model, folder / "0.npz", folder / "reference.npz")
    return measure_files(files, ENGINES, threads, rounds)
