"""Results from the cache: equal to a compilation's, for every kind of output."""

from __future__ import annotations

from pathlib import Path

import cache_proof
import numpy as np
import onnx
import pytest
from cache_proof import KINDS

BASE = """
    <ir_version: 10, opset_import: ["": 20]>
    g (float[ROWS, 4] x) => (float[ROWS, 4] y) { n = Neg(x) y = Relu(n) }
"""


@pytest.mark.values
@pytest.mark.parametrize("rows", ["3", "n"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_output(kind: str, rows: str, tmp_path: Path) -> None:
    model = cache_proof.with_output(onnx.parser.parse_model(BASE.replace("ROWS", rows)), kind)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    feeds = ({"x": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)},)
    cold, warm, again = (
        cache_proof.answers(form, feeds, tmp_path / "cache")
        for form in (path, path, path.read_bytes())
    )
    assert len(cold) == 4, cold
    assert cache_proof.same(cold, warm)
    assert cache_proof.same(cold, again)


def test_a_model_is_read_anew_for_each_stage(tmp_path: Path) -> None:
    model = cache_proof.with_output(onnx.parser.parse_model(BASE.replace("ROWS", "n")), "places")
    content = model.SerializeToString()
    for rows in (3, 5):
        x = np.linspace(-1, 1, 4 * rows, dtype=np.float32).reshape(rows, 4)
        answers = [cache_proof.answers(content, ({"x": x},), tmp_path) for _ in range(2)]
        assert cache_proof.same(*answers)


def test_generated_models(tmp_path: Path) -> None:
    counts, differ = cache_proof.compare(range(30, 32), tmp_path / "cache", tmp_path)
    assert counts.total() == 2
    assert not differ


def test_processes_share_a_cache_while_files_change(tmp_path: Path) -> None:
    answered, wrong = cache_proof.share_cache(tmp_path, tmp_path / "cache", 2, 2, seconds=2)
    assert answered
    assert not wrong
