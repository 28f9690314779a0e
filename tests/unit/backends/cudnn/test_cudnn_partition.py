"""Ops that the backend takes, and those that it leaves, with the recording cuDNN."""

from __future__ import annotations

import ctypes

import pytest
from helpers.cuda.networks import regions_of
from helpers.models import parsed

from byoc_mlir.backends.region import kind_of, nodes_of

_CASES = {
    "a = Conv (x, w, b) z = Relu (a)": ["cudnn.conv2d_bias_relu"],
    "a = Conv (x, w, b) s = Add (a, r) z = Relu (s)": ["cudnn.conv2d_bias_residual_relu"],
    "a = Conv (x, w, b) s = Add (r, a) z = Relu (s)": ["cudnn.conv2d_bias_residual_relu"],
    "a = Conv (x, w) z = Add (r, a)": ["cudnn.conv2d_residual"],
    "a = Conv (x, w) z = Relu (a)": ["cudnn.conv2d_relu"],
    "z = Conv (x, w)": ["nn.conv2d"],
    "a = Conv (x, w) z = Add (a, a)": ["nn.conv2d"],
    "a = Conv (x, w, b) z = Add (a, one)": ["cudnn.conv2d_bias"],
    "a = Conv (x, w, b) t = Relu (a) z = Add (a, t)": ["cudnn.conv2d_bias"],
    "a = Conv (x, w, b) s = Add (a, r) t = Sigmoid (s) z = Mul (s, t)": [
        "cudnn.conv2d_bias_residual"
    ],
    "a = Conv (x, w) c = Conv (x, v) s = Add (a, c) z = Relu (s)": [
        "nn.conv2d",
        "cudnn.conv2d_residual_relu",
    ],
}


@pytest.mark.parametrize("nodes", _CASES)
def test_a_convolution_takes_along_what_follows(cudnn: ctypes.CDLL, nodes: str) -> None:
    model = parsed(
        "(float[1, 4, 6, 6] x, float[5, 4, 3, 3] w, float[5, 4, 3, 3] v, float[5] b,"
        " float[1, 5, 4, 4] r, float[1, 1, 1, 4] one) => (float[1, 5, 4, 4] z)",
        nodes,
    )

    regions = regions_of(model, ("cudnn", "cuda"), "cudnn")

    assert [kind_of(op) for region in regions for op in nodes_of(region)] == _CASES[nodes]


def test_f64_is_left_to_others(cudnn: ctypes.CDLL) -> None:
    model = parsed(
        "(double[1, 4, 6, 6] x, double[5, 4, 3, 3] w) => (double[1, 5, 4, 4] z)",
        "z = Conv (x, w)",
    )

    assert not list(regions_of(model, ("cudnn",), "cudnn"))
