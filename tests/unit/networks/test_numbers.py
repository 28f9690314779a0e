"""Whole networks with random weights, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.testing.light import light_networks, with_random_weights
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import (
    assert_agrees,
    random_inputs,
    run_onnxruntime,
)


def _light(name: str) -> Callable[[], ModelProto]:
    return lambda: with_random_weights(onnx.load(light_networks()[name]), seed=7)


LARGE = ("light_vgg19", "light_zfnet512")
"""Networks of AlexNet's ops with ten times the weights; `test_official_runner` covers them."""

MODELS: dict[str, Callable[[], ModelProto]] = {
    **{name: _light(name) for name in light_networks() if name not in LARGE},
    **{name: NETWORKS[name] for name in ("mlp", "mobilenet_v2", "unet")},
}

WITHOUT_HOST = {
    f"light_{name}" for name in ("inception_v1", "inception_v2", "resnet50", "squeezenet")
}
"""Networks whose ops all occur in others, too."""


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_onnxruntime(name: str) -> None:
    """Checks networks with oneDNN, which has everything that it takes, and most on the host alone,
    too.
    """
    model = MODELS[name]()
    inputs = random_inputs(model, seed=3)
    expected = run_onnxruntime(model, inputs)
    for targets in (("dnnl",),) if name in WITHOUT_HOST else (("dnnl",), ()):
        with byoc_mlir.compile(model, targets, prune="off", fallback="allow") as executable:
            outputs = executable.run(inputs)
        assert_agrees(outputs, expected, tolerance=1e-4)


def test_what_is_left_out_has_the_ops_of_the_others() -> None:
    def ops(name: str) -> set[str]:
        path = light_networks().get(name)
        model = NETWORKS[name]() if path is None else onnx.load(path)
        return {node.op_type for node in model.graph.node}

    for name in LARGE:
        assert ops(name) <= ops("light_bvlc_alexnet")
    others = set.union(*(ops(name) for name in MODELS if name not in WITHOUT_HOST))
    for name in WITHOUT_HOST:
        assert ops(name) <= others
