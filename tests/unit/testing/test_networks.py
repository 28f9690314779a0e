"""Every network is valid, computes something that depends on its weights, and repeats by seed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime

SMALLER: Mapping[str, Mapping[str, int]] = {
    "vgg16": {"image": 32},
    "unet": {"image": 64},
    "inception_v3": {"image": 139},
    "densenet121": {"image": 96},
    "bert6": {"vocabulary": 1000},
    "gpt4": {"vocabulary": 1000},
}


def build(name: str, seed: int = 0, batch: int = 1) -> ModelProto:
    return NETWORKS[name](seed=seed, batch=batch, **SMALLER.get(name, {}))


def digest(model: ModelProto) -> str:
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()


@pytest.mark.parametrize("name", NETWORKS)
def test_network_is_valid_and_its_outputs_vary(name: str) -> None:
    model = build(name)
    onnx.checker.check_model(model, full_check=True)
    outputs = run_onnxruntime(model, random_inputs(model))
    declared = {output.name for output in model.graph.output}
    assert set(outputs) == declared
    for value in outputs.values():
        assert np.isfinite(value).all()
        assert np.abs(value).max() > 0.0
        spread = value.std() / np.abs(value).max()
        assert spread > 0.01, "nearly constant"
    if "logits" in outputs:
        assert 0.1 < outputs["logits"].std() < 30


@pytest.mark.parametrize("name", ["mlp3", "mobilenet_v2", "gpt4", "lstm2", "ssd_raw"])
def test_same_seed_same_bytes(name: str) -> None:
    assert digest(build(name, seed=1)) == digest(build(name, seed=1))
    assert digest(build(name, seed=1)) != digest(build(name, seed=2))


@pytest.mark.parametrize("name", sorted(NETWORKS.keys() - {"vgg16", "resnet50", "inception_v3"}))
def test_batch_is_a_dimension_of_every_output(name: str) -> None:
    model = build(name, batch=2)
    onnx.checker.check_model(model, full_check=True)
    outputs = run_onnxruntime(model, random_inputs(model))
    axis = 1 if name == "lstm2" else 0
    for output, value in outputs.items():
        assert output == "selected" or value.shape[axis] == 2


def test_node_names_are_unique_and_scoped() -> None:
    names = [node.name for node in build("resnet18").graph.node]
    assert len(set(names)) == len(names)
    assert "/layer1.0/Conv_1" in names
