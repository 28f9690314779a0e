"""The nine light networks through ONNX's own runner; `test_numbers` has the host alone, too."""

from __future__ import annotations

import unittest
import warnings
from functools import cache
from typing import Any

import onnx.backend.test
import pytest

from byoc_mlir.onnx_backend import ByocBackend, ByocBackendRep
from byoc_mlir.testing.light import light_networks

# ONNX takes seconds to build its cases: one worker does for all of these tests
pytestmark = pytest.mark.xdist_group("onnx_cases")


class DnnlBackend(ByocBackend):
    """Everything oneDNN takes goes to oneDNN."""

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> ByocBackendRep:
        return super().prepare(model, device, targets=("dnnl",), **kwargs)


@cache
def _real_models() -> type[unittest.TestCase]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the runner builds all its node cases, overflows included
        return onnx.backend.test.BackendTest(DnnlBackend, __name__).test_cases[
            "OnnxBackendRealModelTest"
        ]


@pytest.mark.parametrize("name", [name.removeprefix("light_") for name in light_networks()])
def test_light_network(name: str) -> None:
    test = f"test_{name}_cpu"
    getattr(_real_models()(test), test)()


def test_the_runner_has_nine_networks() -> None:
    names = [name for name in dir(_real_models()) if name.endswith("_cpu")]
    assert len(names) == len(light_networks()) == 9
