"""Pipelines of scikit-learn, as `pipelines/make.py` converted them, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import byoc_mlir
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

MODELS = sorted((Path(__file__).parent / "pipelines").glob("*.onnx"))
NUMBERS = np.random.default_rng(0).standard_normal((12, 6)).astype(np.float32)
COLOURS = np.array([["red"], ["green"], ["blue"], ["green"]], object)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_pipeline(path: Path) -> None:
    model = onnx.load(path)
    data = {"X": COLOURS if path.stem.endswith("_of_strings") else NUMBERS}
    want = run_onnxruntime(model, data)
    with byoc_mlir.compile(model, targets=(), fallback="allow") as executable:
        got = executable.run(data)
    assert set(got) == set(want)
    for name, expected in want.items():
        check(got[name], expected)


def check(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert [list(row) for row in got] == [list(row) for row in want]
        got, want = (np.array([list(row.values()) for row in rows]) for rows in (got, want))
    if want.dtype == object:
        assert got.tolist() == want.tolist()
    else:
        assert_agrees({"found": np.asarray(got)}, {"found": want}, 1e-5)
