"""Findings of the fuzzer: each is a model that failed once, with its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from byoc_mlir_fuzz.case import Settings
from byoc_mlir_fuzz.files import read_case
from byoc_mlir_fuzz.pool import Pool, worker_pool

FOUND = sorted(
    path
    for path in (Path(__file__).parent / "found").iterdir()
    if path.suffix in (".onnx", ".mlir")
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with worker_pool(Settings(targets=()), 1, 60.0) as pool:
        yield pool


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_it_stays_fixed(pool: Pool, path: Path) -> None:
    outcome = pool.judge(read_case(path))
    assert not outcome.failed, outcome.message
    assert outcome.kind != "refused", outcome.message
