"""Sampling, regions, suppression and determinants on the host, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from host_runner import Array, Network, run_on_host
from onnx import helper
from onnx.reference import ReferenceEvaluator
from xdsl.dialects import func

import byoc_mlir
from byoc_mlir.dialects.relay import vision
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model


def _rng() -> np.random.Generator:
    return np.random.default_rng(11)


def _normal(*shape: int) -> Array:
    return _rng().normal(size=shape).astype(np.float32)


def _model(op_type: str, inputs: Sequence[Array], opset: int, **attributes: Any) -> Any:
    names = [f"i{number}" for number in range(len(inputs))]
    node = helper.make_node(op_type, names, ["out"], **attributes)
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in zip(names, inputs, strict=True)
    ]
    output = helper.make_empty_tensor_value_info("out")
    graph = helper.make_graph([node], "node", infos, [output])
    opsets = [helper.make_opsetid("", opset)]
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opsets, ir_version=9)
    )


def _feeds(inputs: Sequence[Array]) -> dict[str, Array]:
    return {f"i{number}": array for number, array in enumerate(inputs)}


def _expected(model: Any, inputs: Sequence[Array]) -> Array:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return np.asarray(session.run(None, _feeds(inputs))[0])


def _check_meaning(model: Any, inputs: Sequence[Array], found: Array) -> None:
    """Checks that the numpy semantics agree with the host code, and so with the oracle."""
    module = import_model(model).module
    (main,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    (meant,) = evaluate(main, inputs)
    np.testing.assert_allclose(found, meant, rtol=1e-4, atol=1e-4)


def _check(op_type: str, inputs: Sequence[Array], opset: int, **attributes: Any) -> None:
    model = _model(op_type, inputs, opset, **attributes)
    found = byoc_mlir.compile(model, targets=(), fallback="allow").run(_feeds(inputs))
    expected = _expected(model, inputs)
    result = next(iter(found.values()))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    _check_meaning(model, inputs, result)


def _check_reference(op_type: str, inputs: Sequence[Array], opset: int, **attributes: Any) -> None:
    """Checks ops that ONNX Runtime lacks, or defines otherwise than the specification's own
    evaluator.
    """
    model = _model(op_type, inputs, opset, **attributes)
    found = byoc_mlir.compile(model, targets=(), fallback="allow").run(_feeds(inputs))
    outputs: Any = ReferenceEvaluator(model).run(None, _feeds(inputs))
    expected = np.asarray(outputs[0])
    result = next(iter(found.values()))
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    _check_meaning(model, inputs, result)


@pytest.mark.pairs
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grid_sample(mode: str, padding: str, aligned: int) -> None:
    inputs = [_normal(2, 3, 5, 7), _normal(2, 6, 4, 2)]
    how = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    # ONNX's evaluator clamps the coordinate, PyTorch and ONNX Runtime each of the 4 x 4 samples
    check = _check if (mode, padding) == ("cubic", "border") else _check_reference
    check("GridSample", inputs, 20, **how)


def test_grid_sample_of_coordinates_that_are_no_numbers() -> None:
    data, grid = _normal(1, 1, 4, 4), np.full((1, 1, 3, 2), np.nan, np.float32)
    grid[0, 0, 1] = np.inf, -np.inf
    network = Network(data, grid)
    op = vision.GridSampleOp(*network.args, method="nearest", padding_mode="border")
    (found,) = run_on_host(network.returning(network.add(op)), network.inputs)
    assert np.isin(found, data).all()


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 3])
def test_roi_align(mode: str, ratio: int) -> None:
    corners = _rng().random((5, 4)).astype(np.float32) * 20
    corners[:, 2:] += corners[:, :2]
    batch = np.array([0, 1, 1, 0, 1], np.int64)
    size = {"output_height": 3, "output_width": 4}
    _check(
        "RoiAlign",
        [_normal(2, 3, 24, 31), corners, batch],
        16,
        mode=mode,
        sampling_ratio=ratio,
        spatial_scale=0.7,
        **size,
    )


def test_max_roi_pool() -> None:
    corners = _rng().random((5, 4)).astype(np.float32) * 20
    corners[:, 2:] += corners[:, :2]
    rois = np.concatenate([[[0], [1], [1], [0], [1]], corners], 1).astype(np.float32)
    inputs = [_normal(2, 3, 24, 31), rois]
    _check("MaxRoiPool", inputs, 9, pooled_shape=[3, 4], spatial_scale=0.5)


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("most", [0, 3, 100])
def test_non_max_suppression(centered: bool, most: int) -> None:
    boxes = _rng().random((2, 60, 4)).astype(np.float32)
    scores = _rng().integers(0, 20, (2, 3, 60)).astype(np.float32)
    limits = [np.array([0.3], np.float32), np.array([4.0], np.float32)]
    network = Network(boxes, scores, *limits)
    op = vision.NonMaxSuppressionOp(*network.args, max_output_size=most, center_point_box=centered)
    network.add(op)
    module = network.returning(*op.results)
    meant = evaluate(network.function, network.inputs)
    indices, count = run_on_host(module, network.inputs)
    np.testing.assert_array_equal(indices, meant[0])
    np.testing.assert_array_equal(count, meant[1])
    inputs = [boxes, scores, np.array([most]), *limits]
    model = _model("NonMaxSuppression", inputs, 11, center_point_box=int(centered))
    expected = _expected(model, inputs)
    assert indices.shape == (6 * min(most, 60), 3)
    np.testing.assert_array_equal(indices[:count], expected)
    assert not indices[count:].any()


def test_non_max_suppression_of_many_boxes() -> None:
    """Checks more boxes than fit one batch, with equal scores, infinite ones, zeros and NaN."""
    count = 700
    rng = _rng()
    corners = rng.random((1, count, 2), np.float32) * 12
    boxes = np.concatenate([corners, corners + rng.random((1, count, 2), np.float32)], axis=2)
    choices = np.array([np.inf, 2, 1, 0.5, 0.0, -0.0, -1, -np.inf, np.nan], np.float32)
    network = Network(boxes, rng.choice(choices, (1, 2, count)), np.array([0.2], np.float32))
    op = vision.NonMaxSuppressionOp(*network.args, max_output_size=count)
    network.add(op)
    module = network.returning(*op.results)
    meant = evaluate(network.function, network.inputs)
    indices, found = run_on_host(module, network.inputs)
    assert found > 2 * 64
    np.testing.assert_array_equal(indices, meant[0])
    np.testing.assert_array_equal(found, meant[1])


@pytest.mark.parametrize("masked", [False, True])
def test_deformable_convolution(masked: bool) -> None:
    data, weight = _normal(2, 4, 6, 7), _normal(6, 2, 3, 2)
    offset = _normal(2, 2 * 3 * 2 * 2, 4, 4)
    mask = _rng().random((2, 2 * 3 * 2, 4, 4)).astype(np.float32)
    inputs = [data, weight, offset, _normal(6), *([mask] if masked else [])]
    how = {"group": 2, "offset_group": 2, "strides": [2, 2], "pads": [1, 1, 2, 0]}
    how |= {"kernel_shape": [3, 2]}
    _check_reference("DeformConv", inputs, 19, **how)


@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 6, 6), (1, 1)])
def test_determinants(shape: tuple[int, ...]) -> None:
    data = _normal(*shape)
    data[..., 0, 0] = 0  # asks for another pivot
    network = Network(data)
    module = network.returning(network.add(vision.DetOp(*network.args)))
    (meant,) = evaluate(network.function, network.inputs)
    (found,) = run_on_host(module, network.inputs)
    np.testing.assert_allclose(found, meant, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found, np.linalg.det(data), rtol=1e-4, atol=1e-5)
