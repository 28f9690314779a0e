"""Scales and biases of quantised convolutions belong to channels; others stay on the host."""

from __future__ import annotations

import numpy as np
import pytest

import byoc_mlir
from byoc_mlir.compiler.source import main_function
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.testing.conformance.graph import Case, CaseBuilder

_OUTPUTS = 16
"""Number of channels, equal to the number of positions, so that the shapes fit along both axes."""


def _convolution(scales: int, biases: int, most: int = 20) -> Case:
    """Returns an int8 1-D convolution with weights of at most `most`, a bias, and scales along an
    axis.
    """
    graph, draw = CaseBuilder(), np.random.default_rng(3)
    data = graph.input(draw.integers(0, 255, (1, 8, _OUTPUTS)).astype(np.uint8))
    weight = graph.constant(draw.integers(-most, most, (_OUTPUTS, 8, 3)).astype(np.int8))
    zeros = [graph.constant(np.array(0, dtype)) for dtype in (np.uint8, np.int8)]
    window = {"strides": [1], "padding": [1, 1], "dilation": [1]}
    sums = graph.op("qnn.conv1d", [data, weight, *zeros], **window).results[0]
    bias = graph.constant(draw.integers(-2000, 2000, _OUTPUTS).astype(np.int32))
    total = graph.op("nn.bias_add", [sums, bias], axis=biases).results[0]
    parameters = (
        (0.001 * (1 + np.arange(_OUTPUTS))).astype(np.float32),
        np.array(0, np.int32),
        np.array(1.7, np.float32),
        np.array(100, np.uint8),
    )
    whole = graph.op("qnn.requantize", [total, *map(graph.constant, parameters)], axis=scales)
    return graph.case("qnn.requantize", "", [whole.results[0]])


@pytest.mark.parametrize(("scales", "biases"), [(1, 1), (2, 1), (1, 2)])
def test_axes(scales: int, biases: int) -> None:
    case = _convolution(scales, biases)
    (expected,) = evaluate(main_function(case.module), case.inputs)
    executable = byoc_mlir.compile(case.module, ("dnnl",), threads=1, prune="off", fallback="allow")
    (found,) = executable.run({"arg0": case.inputs[0]}).values()
    assert np.abs(found.astype(np.int64) - expected.astype(np.int64)).max() <= 1
    regions = {row.region for row in executable.report() if row.region}
    assert bool(regions) == (scales == biases == 1)


def test_lines_whose_pairs_saturate() -> None:
    """Checks that built-in kernels take 1-D convolutions for which the library would saturate."""
    case = _convolution(1, 1, most=127)
    (expected,) = evaluate(main_function(case.module), case.inputs)
    with byoc_mlir.compile(case.module, ("dnnl",), threads=1, prune="off") as executable:
        (found,) = executable.run({"arg0": case.inputs[0]}).values()
        assert {row.placement for row in executable.report()} == {"dnnl"}
    assert np.abs(found.astype(np.int64) - expected.astype(np.int64)).max() <= 1
