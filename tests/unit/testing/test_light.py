"""The light networks with random weights."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from byoc_mlir.testing.light import light_networks, with_random_weights
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime


def test_there_are_nine_light_networks() -> None:
    assert len(light_networks()) == 9
    assert all(path.is_file() for path in light_networks().values())


@pytest.mark.parametrize(
    "name",
    ["light_inception_v1", "light_inception_v2", "light_resnet50", "light_shufflenet"],
)
def test_random_weights_give_a_distribution_that_is_not_flat(name: str) -> None:
    model = with_random_weights(onnx.load(light_networks()[name]), seed=3)
    onnx.checker.check_model(model, full_check=True)
    inputs = random_inputs(model)
    assert len(inputs) == 1
    (probabilities,) = run_onnxruntime(model, inputs).values()
    assert np.isfinite(probabilities).all()
    ordered = np.sort(probabilities.ravel())
    assert 0.003 < ordered[-1] < 0.99
    assert ordered[-1] > 3 * ordered[500] > 0


def test_logits_of_densenet_vary() -> None:
    model = with_random_weights(onnx.load(light_networks()["light_densenet121"]), seed=3)
    (logits,) = run_onnxruntime(model, random_inputs(model)).values()
    assert 0.1 < logits.std() < 30


def test_weights_repeat_by_seed_and_the_original_is_untouched() -> None:
    model = onnx.load(light_networks()["light_squeezenet"])
    before = model.SerializeToString(deterministic=True)
    first, again, other = (
        with_random_weights(model, seed).SerializeToString(deterministic=True) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other
    assert model.SerializeToString(deterministic=True) == before


def test_no_constant_of_shape_is_left_and_batch_norm_variances_are_positive() -> None:
    model = with_random_weights(onnx.load(light_networks()["light_resnet50"]))
    assert "ConstantOfShape" not in {node.op_type for node in model.graph.node}
    arrays = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    norms = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    assert len(norms) == 53
    assert all(arrays[node.input[4]].min() > 0.5 for node in norms)
