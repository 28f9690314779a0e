"""The recording driver and cuDNN in the place of NVIDIA's."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.cuda import emulation
from helpers.cuda.emulation import Record, recording_cudnn
from helpers.cuda.fixtures import gpu

from byoc_mlir.backends.cudnn.library import CUDNN, load_cudnn
from byoc_mlir.backends.cudnn.properties import ENVIRONMENT_VARIABLE
from byoc_mlir.errors import BackendError

__all__ = ["gpu"]

_VERSION = 91900
"""Version of cuDNN that wrote the properties; others may refuse them."""


@pytest.fixture
def cudnn(gpu: Record, monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.CDLL]:
    """Yields the recording cuDNN, and checks that no handle or descriptor is left."""
    monkeypatch.setenv(CUDNN.environment, str(recording_cudnn()))
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    library = ctypes.CDLL(str(recording_cudnn()))
    yield library
    left = (ctypes.c_int * 2)()
    library.count_cudnn(left)
    assert list(left) == [0, 0]


@pytest.fixture
def saved_h200(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses NVIDIA's cuDNN for an H200, whose properties cuDNN 9.19 wrote."""
    monkeypatch.delenv(CUDNN.environment, raising=False)
    try:
        found = load_cudnn().version
    except BackendError as error:
        pytest.skip(str(error))
    if found != _VERSION:
        pytest.skip(f"the properties are those of cuDNN {_VERSION}, found {found}")
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, str(Path(emulation.__file__).with_name("h200.json")))
