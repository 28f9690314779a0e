"""Cases as files: a model, its inputs, and the command that repeats them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import onnx

from byoc_mlir.backends.onnxruntime.export import EXPORTS, export_region
from byoc_mlir.backends.region import nodes_of
from byoc_mlir.compiler.source import main_function
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.frontend.files.mlir_file import read_mlir, write_mlir
from byoc_mlir.testing.conformance.graph import Case

COMMAND = "python -m byoc_mlir.testing.conformance"


def save_case(case: Case, folder: Path, target: str) -> str:
    """Writes a case: `.mlir` with its weights, `.npz` with its inputs, and `.onnx` if ONNX has the
    op.

    Returns:
        The command that runs it on the backend and compares.
    """
    folder.mkdir(parents=True, exist_ok=True)
    words = re.sub(r"[^a-zA-Z0-9.=]+", "_", f"{case.subject} {case.label}").strip("_")[:96]
    number = sum(1 for _ in folder.glob("*.npz"))
    path = folder / f"{number:03}_{words}.mlir"
    write_mlir(case.module, path)
    named = {f"arg{index}": array for index, array in enumerate(case.inputs)}
    np.savez(path.with_suffix(".npz"), allow_pickle=False, **named)
    function = main_function(case.module)
    if all(relay_name(op) in EXPORTS for op in nodes_of(function)):
        onnx.save(export_region(function), path.with_suffix(".onnx"))
    return f"{COMMAND} {shlex.quote(str(path))} --target {shlex.quote(target)}"


def read_case(path: Path) -> Case:
    """Reads a case that `save_case` wrote.

    Raises:
        InvalidModelError: the file is not MLIR text.
        InvalidInputError: there are no inputs beside it.
    """
    stored = path.with_suffix(".npz")
    if not stored.is_file():
        raise InvalidInputError(f"there are no inputs {stored} beside {path}")
    with np.load(stored, allow_pickle=False) as file:
        arrays = tuple(file[f"arg{index}"] for index in range(len(file.files)))
    return Case(path.stem, "", read_mlir(path), arrays)
