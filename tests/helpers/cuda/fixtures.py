"""Fixtures with recording libraries in the place of NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from helpers.cuda.emulation import Record, emulated_text, recording_driver

from byoc_mlir.backends.cuda import images
from byoc_mlir.nvidia.driver import ENVIRONMENT_VARIABLE
from byoc_mlir.nvidia.gpu import forget_gpus


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    """Yields the record of a GPU that runs kernels on the processor, and checks that nothing is
    left on it.
    """
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(recording_driver()))
    monkeypatch.setattr(images, "ptx_of", emulated_text)
    record = Record()
    record.forget()
    before = record.held()
    yield record
    record.forget()
    assert record.held() == before


@pytest.fixture
def forgotten_gpus() -> Iterator[None]:
    """Clears the cache of GPUs before and after a test."""
    forget_gpus()
    yield
    forget_gpus()
