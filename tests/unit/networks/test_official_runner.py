"""The nine light networks through ONNX's own test runner, with oneDNN and on the host alone."""

from __future__ import annotations

import unittest
import warnings
from functools import cache
from typing import Any

import onnx.backend.test
import pytest

from byoc_mlir.onnx_backend import ByocBackend, ByocBackendRep
from byoc_mlir.testing.light import light_networks

# building the runner takes seconds: one worker builds it for all of these tests
pytestmark = pytest.mark.xdist_group("official_runner")


class DnnlBackend(ByocBackend):
    """Everything oneDNN takes goes to oneDNN."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> ByocBackendRep:
        return super().prepare(model, device, targets=("dnnl",), **kwargs)


class HostBackend(ByocBackend):
    """Everything is compiled for the host."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> ByocBackendRep:
        return super().prepare(model, device, targets=(), **kwargs)


@cache
def _real_models(backend: type[ByocBackend]) -> type[unittest.TestCase]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the runner builds all its node cases, overflows included
        return onnx.backend.test.BackendTest(backend, __name__).test_cases[
            "OnnxBackendRealModelTest"
        ]


@pytest.mark.parametrize("backend", [DnnlBackend, HostBackend])
@pytest.mark.parametrize("name", [name.removeprefix("light_") for name in light_networks()])
def test_light_network(backend: type[ByocBackend], name: str) -> None:
    test = f"test_{name}_cpu"
    getattr(_real_models(backend)(test), test)()


def test_the_runner_has_nine_networks() -> None:
    names = [name for name in dir(_real_models(HostBackend)) if name.endswith("_cpu")]
    assert len(names) == len(light_networks()) == 9
