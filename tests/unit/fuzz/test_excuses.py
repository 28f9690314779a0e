"""Accepted and refused differences from an oracle's outputs."""

from __future__ import annotations

import numpy as np
import onnx
from byoc_mlir_fuzz.case import Array, Feeds
from byoc_mlir_fuzz.excuses import slack_of
from byoc_mlir_fuzz.oracles import reference_answer


def _slack(nodes: str, feeds: Feeds) -> Array:
    """Returns the accepted error of each element of output `y`."""
    inputs = ", ".join(f"float{list(array.shape)} {name}" for name, array in feeds.items())
    header = '<ir_version: 10, opset_import: ["" : 18]>'
    model = onnx.parser.parse_model(f"{header} g ({inputs}) => (float[] y) {{ {nodes} }}")
    return slack_of(reference_answer, model, feeds, reference_answer(model, feeds))["y"]


def test_a_denormal_number_may_be_zero() -> None:
    scores = np.array([[0, -90]], np.float32)  # the second share is 8e-40
    values = np.array([[1, 1], [-np.inf, 1]], np.float32)
    slack = _slack("p = Softmax(x) y = MatMul(p, w)", {"x": scores, "w": values})
    assert slack[0, 0] == np.inf
    assert slack[0, 1] < 1e-4


def test_a_small_number_is_not_zero() -> None:
    scores = np.array([[0, -80]], np.float32)  # the second share is 2e-35
    values = np.array([[1, 1], [-np.inf, 1]], np.float32)
    slack = _slack("p = Softmax(x) y = MatMul(p, w)", {"x": scores, "w": values})
    assert slack[0, 0] == 0


def test_what_is_small_between_terms_of_one_has_no_sign() -> None:
    slack = _slack("m = Mish(x) y = Sqrt(m)", {"x": np.array([[-19, 2]], np.float32)})
    assert slack[0, 0] == np.inf
    assert slack[0, 1] < 1e-3


def test_a_logarithm_of_almost_one_is_as_good_as_the_sum() -> None:
    scores = np.array([[-9, 0]], np.float32)  # the second logarithm is -1e-4
    slack = _slack("p = LogSoftmax(x) y = Neg(p)", {"x": scores})
    assert 5e-7 < slack[0, 1] < 1e-4


def test_no_element_is_left_to_chance() -> None:
    slack = _slack("m = Mish(x) y = Sign(m)", {"x": np.full((9, 99), -19, np.float32)})
    assert (slack >= 1).all()
