"""Hostile models, texts and stores: each kind ends in a result or in a typed error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from byoc_mlir_fuzz.hostile import Counts, names_of
from byoc_mlir_fuzz.hostile_case import KINDS, STAGES, Ended, write_case
from byoc_mlir_fuzz.hostile_inputs import hostile_inputs
from byoc_mlir_fuzz.hostile_models import ATTACKS
from byoc_mlir_fuzz.hostile_text import hostile_text
from helpers.models import model_of, node
from ml_dtypes import bfloat16, float8_e5m2, int4

import byoc_mlir
from byoc_mlir.errors import InvalidModelError, MissingWeightsError
from byoc_mlir.frontend import import_model
from byoc_mlir.frontend.files.mlir_file import write_mlir
from byoc_mlir.testing.forked import run_forked

GUARDS = Path(__file__).parents[2] / "helpers" / "guard_pages.py"


def test_each_kind_of_hostile_input() -> None:
    command = [sys.executable, "-m", "byoc_mlir_fuzz.hostile", "--cases", "48", "--seed", "7"]
    done = subprocess.run([*command, "--backend", str(GUARDS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "48 cases, 0 failures" in done.stdout
    counts = [line.split()[:3] for line in done.stdout.splitlines()]
    assert all([kind, "3", "in"] in counts for kind in KINDS)


def test_a_name_gives_the_same_case(tmp_path: Path) -> None:
    for number, name in zip(range(len(ATTACKS)), names_of(3, kinds=[*ATTACKS]), strict=False):
        files = list[bytes]()
        for attempt in "ab":
            folder = tmp_path / f"{number}{attempt}"
            folder.mkdir()
            files.append(write_case(name, folder).read_bytes())
        assert files[0] == files[1], name


def test_failures_are_counted() -> None:
    counts = Counts()
    counts.add(Ended("names/0/1", "import", "InvalidModelError"))
    counts.add(Ended("text/0/2", "run", failure="the process ended with -11"))
    lines = list(counts.lines())
    assert lines[0] == "2 cases, 1 failures"
    assert [line.split() for line in lines[1:7]] == [
        [stage, {"import": "1", "run": "1"}.get(stage, "0")] for stage in STAGES
    ]
    assert lines[-1] == "FAILED text/0/2 in run: the process ended with -11"


def test_most_changed_texts_still_parse() -> None:
    text = str(import_model(model_of([node("Relu", "x")], {"x": [2, 3]})).module)
    changed = {hostile_text(Random(seed), text) for seed in range(200)}
    assert len(changed) > 60


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float32, bfloat16, float8_e5m2, int4])
def test_inputs_of_each_type_can_be_changed(dtype: type[Any]) -> None:
    for seed in range(800):
        hostile_inputs(Random(seed), {"x": np.ones((2, 3), dtype)})


_DAMAGE = """
import sys
from pathlib import Path
from random import Random
from byoc_mlir_fuzz.hostile_files import hostile_cache
for seed in range(400):
    entries = {name: bytes(200) for name in ("a.byoc", "b.byoc", "c.byoc")}
    hostile_cache(Random(seed), entries, Path(sys.argv[1]) / str(seed))
"""


def test_a_cache_is_damaged_several_times_without_waiting_for_a_pipe(tmp_path: Path) -> None:
    run_forked(_DAMAGE, str(tmp_path), seconds=30)


def test_a_store_with_elements_that_numpy_lacks(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    model = model_of([node("MatMul", "x w")], {"x": [1, 8]}, {"w": np.ones((8, 3), np.float32)})
    write_mlir(import_model(model).module, path)
    store = path.with_suffix(".safetensors")
    data = store.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = data[8 : 8 + size].replace(b'"dtype":"U8"', b'"dtype":"F8_E5M2"')
    store.write_bytes(len(header).to_bytes(8, "little") + header + data[8 + size :])
    with pytest.raises(MissingWeightsError, match="holds other bytes"):
        byoc_mlir.compile(path, targets=())


@pytest.mark.parametrize("damage", [b"", b"\x00" * 8, b"{" * 100, b"\xff" * 200])
def test_a_damaged_store(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "model.mlir"
    model = model_of([node("MatMul", "x w")], {"x": [1, 8]}, {"w": np.ones((8, 3), np.float32)})
    write_mlir(import_model(model).module, path)
    path.with_suffix(".safetensors").write_bytes(damage)
    with pytest.raises(InvalidModelError, match="is damaged: "):
        byoc_mlir.compile(path, targets=())
