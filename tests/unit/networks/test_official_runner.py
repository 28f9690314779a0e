"""Light networks through ONNX's own runner; `test_numbers` has the others, with random weights."""

from __future__ import annotations

import unittest
from functools import cache
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.backend.test import BackendTest, runner
from onnx.backend.test.loader import load_model_tests

from byoc_mlir.onnx_backend import ByocBackend, ByocBackendRep
from byoc_mlir.testing.light import light_networks


class DnnlBackend(ByocBackend):
    """Runner's backend, in which oneDNN gets everything that it takes."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **kwargs: Any) -> bool:
        """Returns `True`, so that the runner fails on a network that does not compile, and does not
        skip it.
        """
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **kwargs: Any) -> ByocBackendRep:
        return super().prepare(model, device, targets=("dnnl",), **kwargs)


@cache
def _real_models() -> type[unittest.TestCase]:
    """Returns the runner's test case of real models alone; ONNX takes ten seconds to build the
    other kinds.
    """

    def load(kind: str) -> list[Any]:
        return load_model_tests(kind=kind) if kind == "real" else []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "load_model_tests", load)
        return BackendTest(DnnlBackend, __name__).test_cases["OnnxBackendRealModelTest"]


@pytest.mark.parametrize("name", ["squeezenet", "vgg19", "zfnet512"])
def test_light_network(name: str) -> None:
    test = f"test_{name}_cpu"
    getattr(_real_models()(test), test)()


def test_the_runner_has_nine_networks() -> None:
    names = [name for name in dir(_real_models()) if name.endswith("_cpu")]
    assert len(names) == len(light_networks()) == 9


def _one_node(op_type: str, domain: str = "") -> ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    node = helper.make_node(op_type, ["x"], ["y"], domain=domain)
    graph = helper.make_graph([node], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, 17)], ir_version=8)


def test_what_compiles_is_compatible() -> None:
    assert ByocBackend.is_compatible(_one_node("Relu"))
    assert not ByocBackend.is_compatible(_one_node("NoSuchOp", "nobody"))
