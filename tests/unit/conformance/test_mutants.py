"""Detection of wrong backends by the kit: one right backend, and a table of small mutations of it.

Each mutation is tested on the one op or composite that it concerns. The name of a failing case must
point at the reason.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from mutations import (
    Mutant,
    accumulates,
    beyond_the_end,
    exchanged_constants,
    first_gates_exchanged,
    first_image,
    flat_broadcast,
    float16_inside,
    float_sums,
    from_the_left,
    half_products,
    half_sums,
    ignored,
    in_place,
    keeps_state,
    last_head,
    no_constants,
    off_by_one,
    one_group,
    one_weight_for_a_shape,
    shared_stack,
    shares_a_buffer,
    swapped_ends,
    transposed_square,
    unshared_stack,
    unstable_topk,
    window,
)
from numpy_backend import KERNELS, conv2d, numpy_backend
from numpy_kernels import gru, lstm, roi_pool, scatter_elements, wide

from byoc_mlir.testing import run_conformance
from byoc_mlir.testing.conformance import runner

MUTANTS = [
    Mutant("shapes taken for equal", "add", r"\[4, 1, 1\]", flat_broadcast),
    Mutant("aligned at the left", "add", "a row, not a column", from_the_left),
    Mutant("operands exchanged", "subtract", r"\[2, 4, 9, 8\]", lambda attrs, a, b: b - a),
    Mutant("operands exchanged", "divide", "float32", lambda attrs, a, b: b / a),
    Mutant("no activation", "nn.relu", "largest error", lambda attrs, a: a),
    Mutant(
        "negative values are forgotten",
        "nn.leaky_relu",
        "alpha=0.3",
        lambda attrs, a: np.maximum(a, 0),
    ),
    Mutant(
        "NaN is lost", "nn.relu", "special values", lambda attrs, a: np.fmax(a, 0).astype(a.dtype)
    ),
    Mutant("NaN is lost", "maximum", "special values", lambda attrs, a, b: np.fmax(a, b)),
    Mutant(
        "infinity is a large number",
        "exp",
        "special values",
        lambda attrs, a: np.exp(np.clip(a, -50, 50)),
    ),
    Mutant(
        "compares in float32",
        "equal",
        "large integers",
        lambda attrs, a, b: a.astype("f4") == b.astype("f4"),
    ),
    Mutant(
        "integers in float32",
        "add",
        "large integers",
        lambda attrs, a, b: a.astype("f4") + b.astype("f4"),
    ),
    Mutant(
        "condition reversed", "where", "float32", lambda attrs, mask, x, y: np.where(mask, y, x)
    ),
    Mutant("sums of half precision in half precision", "sum", "float16.*long sums", half_sums),
    Mutant("sums of integers in float32", "sum", "large integers", float_sums),
    Mutant("products in half precision", "nn.dense", "float16.*long sums", half_products),
    Mutant("float32 rounded to half precision", "nn.dense", r"float32 \[3, 8\]", float16_inside),
    Mutant("no groups", "nn.conv2d", "groups=", one_group),
    Mutant("padding off by one", "nn.conv2d", r"padding=\[1, 1, 1, 1\]", off_by_one),
    Mutant("padding at the wrong ends", "nn.conv2d", r"padding=\[1, 0, 2, 1\]", swapped_ends),
    Mutant(
        "kernel transposed",
        "nn.conv2d",
        r"\[8, 4, 3, 3\]",
        lambda attrs, x, w: conv2d(
            attrs, x, w.swapaxes(-1, -2) if w.shape[-1] == w.shape[-2] else w
        ),
    ),
    Mutant(
        "kernel flipped",
        "nn.conv2d",
        r"\[8, 4, 3, 3\]",
        lambda attrs, x, w: conv2d(attrs, x, w[..., ::-1, ::-1]),
    ),
    Mutant("only the first of a batch", "nn.conv2d", r"\[2, 4, 9, 8\]", first_image),
    Mutant("no stacks", "nn.matmul", "float32", shared_stack),
    Mutant("no sharing in stacks", "nn.matmul", "shared right-hand side", unshared_stack),
    Mutant("square weights are transposed", "nn.dense", "square weight", transposed_square),
    Mutant(
        "bias along the last axis",
        "nn.bias_add",
        r"\[4, 4\], \[4\]",
        lambda attrs, x, b: x + b if x.shape[-1] == b.size else KERNELS["nn.bias_add"](attrs, x, b),
    ),
    Mutant(
        "an axis of size 1 is not there",
        "max",
        "axis of size 1",
        lambda attrs, x: np.zeros(attrs["shape"]) if 1 in x.shape else KERNELS["max"](attrs, x),
    ),
    Mutant(
        "maxima start at zero",
        "max",
        "negative values",
        lambda attrs, x: np.maximum(KERNELS["max"](attrs, x), 0),
    ),
    Mutant(
        "padding takes part",
        "nn.max_pool2d",
        "negative values",
        lambda attrs, x: np.maximum(KERNELS["nn.max_pool2d"](attrs, x), 0),
    ),
    Mutant(
        "large values overflow",
        "nn.softmax",
        "large values",
        lambda attrs, x: np.exp(wide(x)) / np.exp(wide(x)).sum(attrs["axis"], keepdims=True),
    ),
    Mutant(
        "square matrices are not transposed",
        "transpose",
        "square",
        lambda attrs, x: x if len(set(x.shape)) == 1 else x.transpose(attrs["axes"]),
    ),
    Mutant(
        "only the order of axes reversed", "transpose", r"axes=\[0, 2, 3, 1\]", lambda attrs, x: x.T
    ),
    Mutant(
        "the variance is squared",
        "nn.batch_norm",
        r"\[4\]",
        lambda attrs, x, g, b, m, v: KERNELS["nn.batch_norm"](attrs, x, g, b, m, v * v),
    ),
    Mutant(
        "operands exchanged",
        "nn.layer_norm",
        r"\[8\], \[8\]",
        lambda attrs, x, g, b: KERNELS["nn.layer_norm"](attrs, x, b, g),
    ),
    window("nn.conv2d", "strides", [1, 1], r"strides=\[2, 2\]"),
    window("nn.conv2d", "padding", [0, 0, 0, 0], r"padding=\[1, 1, 1, 1\]"),
    window("nn.conv2d", "dilation", [1, 1], r"dilation=\[2, 2\]"),
    window("nn.max_pool2d", "strides", [1, 1], r"strides=\[2, 2\]"),
    window("nn.max_pool2d", "dilation", [1, 1], r"dilation=\[2, 2\]"),
    window("nn.max_pool2d", "ceil_mode", False, "ceil_mode=True"),
    window("nn.avg_pool2d", "ceil_mode", False, "ceil_mode=True"),
    ignored("nn.avg_pool2d", "count_include_pad", False, "count_include_pad=True"),
    ignored("nn.avg_pool2d", "count_include_pad", True, r"padding=\[1, 1, 1, 1\]"),
    ignored("nn.matmul", "transpose_a", False, "transpose_a=True"),
    ignored("nn.matmul", "transpose_b", False, "transpose_b=True"),
    ignored("nn.batch_norm", "epsilon", 1e-5, "epsilon=0.1"),
    ignored("nn.batch_norm", "axis", 1, "axis=-1"),
    ignored("nn.layer_norm", "epsilon", 1e-5, "epsilon=0.1"),
    ignored("nn.layer_norm", "axis", -1, "axis=1"),
    ignored("nn.leaky_relu", "alpha", 0.01, "alpha=0.3"),
    ignored("nn.softmax", "axis", -1, "axis=[01]"),
    ignored("clip", "a_max", 0.75, "a_max=6"),
    ignored("sum", "axis", [1], r"axis=\[-1\]"),
    ignored("mean", "keepdims", False, "keepdims=True"),
    ignored("concatenate", "axis", 0, "axis=1"),
    ignored("nn.pad", "pad_value", 0.0, "pad_value=2.5"),
    ignored("take", "axis", 0, "axis=1"),
    ignored("cumsum", "axis", 0, "axis=1"),
    ignored("topk", "is_ascend", False, "is_ascend=True"),
    ignored("topk", "axis", 0, "axis=-1"),
    ignored("scatter_elements", "reduction", "update", "reduction=add"),
    ignored("scatter_elements", "axis", 0, "axis=1"),
    ignored("nn.lstm", "direction", "forward", "direction=reverse"),
    ignored("nn.gru", "linear_before_reset", False, "linear_before_reset=True"),
    ignored("vision.roi_pool", "spatial_scale", 1.0, "spatial_scale=0.5"),
    Mutant("equal values in any order", "topk", "equal values", unstable_topk),
    Mutant(
        "no places from the end",
        "scatter_elements",
        "from the end",
        lambda attrs, x, i, u: scatter_elements(attrs, x, np.maximum(i, 0), u),
    ),
    Mutant(
        "starts with zeros",
        "nn.lstm",
        r"\[1, 3, 5\]",
        lambda attrs, x, w, h, c: lstm(attrs, x, w, 0 * h, c),
    ),
    Mutant(
        "gates in another order",
        "nn.gru",
        "float32",
        lambda attrs, x, w, b, h: gru(
            attrs, first_gates_exchanged(x), first_gates_exchanged(w), first_gates_exchanged(b), h
        ),
    ),
    Mutant(
        "every region in the first image",
        "vision.roi_pool",
        "float32",
        lambda attrs, x, rois: roi_pool(attrs, x, rois * [0, 1, 1, 1, 1]),
    ),
    Mutant("no activation", "conv2d_relu", "nn.conv2d nn.relu", conv2d),
    Mutant(
        "no bias",
        "conv2d_bias_relu",
        "nn.conv2d nn.bias_add nn.relu",
        lambda attrs, x, w, b: np.maximum(conv2d(attrs, x, w), 0),
    ),
    Mutant(
        "activation before the bias",
        "conv2d_bias_relu",
        "nn.conv2d nn.bias_add nn.relu",
        lambda attrs, x, w, b: np.maximum(conv2d(attrs, x, w), 0) + b.reshape(-1, 1, 1),
    ),
    Mutant(
        "no groups in a composite",
        "conv2d_relu",
        "groups=",
        lambda attrs, x, w: np.maximum(one_group(attrs, x, w), 0),
    ),
    Mutant("no activation", "sum_relu", "add nn.relu", lambda attrs, a, b: a + b),
    Mutant(
        "shapes taken for equal",
        "sum_relu",
        r"add as in .*\[4, 1, 1\]",
        lambda attrs, a, b: np.maximum(flat_broadcast(attrs, a, b), 0),
    ),
    Mutant("constants are zeros", "sum_relu", "a constant .* for a wildcard", how=no_constants),
    Mutant("reads beyond its input", "nn.relu", "largest error", beyond_the_end),
    Mutant("writes its input", "nn.relu", "an input was changed|twice in a row", in_place),
    Mutant("results of the first run", "nn.relu", "in a second run", how=keeps_state()),
    Mutant("buffers are not cleared", "add", "in a second run", how=accumulates()),
    Mutant("threads share a buffer", "nn.relu", "in two threads at once", how=shares_a_buffer()),
    Mutant(
        "one weight for a shape",
        "nn.dense",
        "other constants of the same shapes",
        how=one_weight_for_a_shape(),
    ),
    Mutant("constants of one shape exchanged", "nn.batch_norm", r"\[4\]", how=exchanged_constants),
    Mutant("one result for all", "add", "twice in a row", how=last_head),
]


def _named(mutant: Mutant) -> str:
    return f"{mutant.subject}: {mutant.name}".replace(" ", "_")


@pytest.mark.parametrize("mutant", MUTANTS, ids=_named)
def test_a_wrong_backend_fails(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "RETRIES", 1)  # one case alone is enough
    name = f"mutant{MUTANTS.index(mutant)}"
    backend = numpy_backend(name, kernels=mutant.kernels, how=mutant.how)
    subject = (
        mutant.subject if mutant.subject in backend().op_rules() else f"{name}.{mutant.subject}"
    )
    report = run_conformance(backend, only=(subject,), networks={})
    said = [f"{outcome.label}: {outcome.detail}" for outcome in report.failures]
    assert {outcome.subject for outcome in report.failures} == {subject}
    assert any(re.search(mutant.seen, text) for text in said), "\n".join(said)


def test_the_honest_backend_passes() -> None:
    report = run_conformance(numpy_backend("honest"), networks={})
    assert report.passed, str(report)
    tried = {outcome.subject.removeprefix("honest.") for outcome in report.outcomes}
    assert {mutant.subject for mutant in MUTANTS} <= tried
