"""Models that converters wrote, kept as files, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import byoc_mlir
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime


def models_in(folder: str) -> list[Path]:
    """Returns the models of a folder beside this file."""
    return sorted((Path(__file__).parent / folder).glob("*.onnx"))


def check_model(path: Path, inputs: Mapping[str, Any], **options: Any) -> None:
    """Compiles a model, and compares labels, values and maps with ONNX Runtime's."""
    model = onnx.load(path)
    want = run_onnxruntime(model, inputs)
    with byoc_mlir.compile(model, fallback="allow", **options) as executable:
        got = executable.run(inputs)
    assert set(got) == set(want)
    for name, expected in want.items():
        _check(got[name], expected)


def _check(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert [list(row) for row in got] == [list(row) for row in want]
        got, want = (np.array([list(row.values()) for row in rows]) for rows in (got, want))
    if want.dtype == object:
        assert got.tolist() == want.tolist()
    else:
        assert_agrees({"found": np.asarray(got)}, {"found": want}, 1e-5)
