"""The recording driver and cuBLASLt in the place of NVIDIA's."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest
from helpers.cuda.emulation import Record, recording_cublaslt
from helpers.cuda.fixtures import gpu

from byoc_mlir.backends.cublaslt.library import CUBLASLT

__all__ = ["gpu"]


@pytest.fixture
def cublaslt(gpu: Record, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    """Yields the recording cuBLASLt, and checks that no handle is left."""
    monkeypatch.setenv(CUBLASLT.environment, str(recording_cublaslt()))
    library = ctypes.CDLL(str(recording_cublaslt()))
    yield library
    assert library.count_handles() == 0
