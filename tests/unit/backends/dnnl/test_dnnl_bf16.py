"""`precision="bf16"`: matmuls in `bf16` if the processor has instructions for it."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from bf16_models import (
    MODELS,
    STEP,
    assert_close,
    check_network,
    check_whole_windows,
    compiled,
    shuffle,
)
from helpers.models import parsed
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.onednn.engine import engine
from byoc_mlir.testing.isa import call_at, distinct_levels, run_at
from byoc_mlir.testing.networks import NETWORKS, GraphBuilder
from byoc_mlir.testing.reference import random_inputs, run_onnxruntime


@pytest.mark.parametrize("name", MODELS)
def test_a_network(name: str) -> None:
    check_network(name)


@pytest.mark.parametrize("level", distinct_levels("avx2", "avx512_vnni"))
def test_a_processor_without_bf16(level: str) -> None:
    call_at(level, check_network, "convolutions")


def test_channels_change_places_in_f32() -> None:
    """Checks the shuffle: the library's shuffle of 16 `bf16` channels writes out of bounds."""
    model = shuffle()
    inputs = random_inputs(model)
    with compiled(model) as executable:
        assert_close(executable.run(inputs), run_onnxruntime(model, inputs))
        assert {row.precision for row in executable.report() if row.node == "/Transpose"} == {"f32"}


def test_what_is_faster_in_f32_stays_there() -> None:
    """Checks convolutions by Winograd's algorithm, which only `f32` has, and ops without `bf16`
    code in the library.
    """
    if not engine().has_bf16:
        return
    net = GraphBuilder("net", seed=0)
    x = net.relu(net.conv(net.input("x", [1, 64, 56, 56]), 64, 1))
    y = net.op("ConvTranspose", x, net.normal((64, 8, 3, 3), 0.1), strides=[2, 2])
    net.channels[y] = 8
    net.output(net.conv(y, 8, 1), "y", [1, 8, 113, 113])
    with compiled(net.build()) as executable:
        rows = {row.node: row.precision for row in executable.report()}
    assert rows["/ConvTranspose"].startswith("f32: oneDNN has only reference code for it in bf16")
    assert rows["/Conv"] == "bf16"


@pytest.mark.parametrize("window", [(2, 2), (1, 3), (4, 2)])
def test_transposed_convolutions_of_whole_windows_are_convolutions(window: tuple[int, int]) -> None:
    check_whole_windows(*map(str, window))


@pytest.mark.parametrize("level", distinct_levels("avx2", "avx512_bf16"))
def test_transposed_convolutions_of_whole_windows_at(level: str) -> None:
    call_at(level, check_whole_windows, "2", "2")


def test_next_to_nothing_to_compute_stays_in_f32() -> None:
    """Checks the matmuls that weight channels, between profitable convolutions."""
    if not engine().has_bf16:
        return
    net = GraphBuilder("net", seed=0)
    x = net.relu(net.conv(net.input("x", [1, 3, 48, 48]), 16, 1))
    y = net.conv(net.op("GlobalAveragePool", x), 16, 1)
    x = net.op("Mul", x, net.op("Sigmoid", y))
    net.channels[x] = 16
    net.output(net.conv(x, 16, 1), "y", [1, 16, 48, 48])
    with compiled(net.build()) as executable:
        rows = {row.node: row.precision for row in executable.report() if row.op_type == "Conv"}
    assert list(rows.values()) == ["bf16", "f32: 256 MACs do not pay", "bf16"]


@pytest.mark.parametrize("exact", [(), ("/lstm.0/LSTM",)])
def test_recurrent_layers_of_the_host(exact: tuple[str, ...]) -> None:
    """Checks that weights are rounded, unless samples or the user keep them exact."""
    model = NETWORKS["lstm2"](steps=9)
    inputs = random_inputs(model)
    with byoc_mlir.compile(
        model, ("dnnl",), 1, "bf16", "allow", cache=False, exact=exact
    ) as executable:
        assert_close(executable.run(inputs), run_onnxruntime(model, inputs))
        rows = {row.node: row.precision for row in executable.report() if row.op_type == "LSTM"}
    in_f32 = [name for name, precision in rows.items() if precision != "bf16"]
    assert in_f32 == list(exact if engine().has_bf16 else rows)


VERBOSE = """
import os, sys
os.environ["ONEDNN_VERBOSE"] = "1"
sys.path.insert(0, sys.argv[1])
from bf16_models import MODELS, compiled
from byoc_mlir.testing.reference import random_inputs
model = MODELS[sys.argv[2]]()
with compiled(model) as executable:
    print("measured", flush=True)
    executable.run(random_inputs(model))
"""


@pytest.mark.parametrize("level", distinct_levels("avx512_bf16", "amx"))
@pytest.mark.parametrize(("name", "count"), [("convolutions", 4), ("dense_blocks", 11)])
def test_activations_stay_in_bf16_between_primitives(name: str, count: int, level: str) -> None:
    if not engine().has_bf16:
        return
    printed = run_at(level, VERBOSE, str(__file__).rpartition("/")[0], name)
    lines = [line for line in printed.partition("measured")[2].splitlines() if ",exec," in line]
    convolutions = [line for line in lines if ",convolution," in line]
    assert len(convolutions) == count
    assert all("src_bf16" in line and "dst_bf16" in line for line in convolutions)
    assert not [line for line in lines if re.search("reorder.*(src_f32.*dst_bf16)", line)]
    assert not [line for line in lines if re.search("(batch_norm|concat|pool).*_f32", line)]


def test_softmax_writes_what_a_product_reads() -> None:
    if not engine().has_bf16:
        return
    printed = run_at("amx", VERBOSE, str(__file__).rpartition("/")[0], "attention")
    lines = [line for line in printed.partition("measured")[2].splitlines() if ",exec," in line]
    (softmax,) = [line for line in lines if ",softmax," in line]
    assert "src_f32" in softmax
    assert "dst_bf16" in softmax


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_number_that_is_not_finite_goes_along_the_axis_of_a_softmax(number: float) -> None:
    """Checks NaN and infinity: one in each column makes all scores NaN, also if the scores are
    rounded in the same pass.
    """
    net = GraphBuilder("net", seed=0)
    a = net.input("a", [64, 48])
    scores = net.op("Softmax", net.op("MatMul", a, net.normal((48, 80), 0.2)), axis=0)
    net.output(net.op("MatMul", scores, net.normal((80, 64), 0.2)), "y", [64, 64])
    model = net.build()
    inputs = random_inputs(model)
    inputs["a"][5] = number
    with compiled(model) as executable:
        found = executable.run(inputs)["y"]
    assert np.isnan(found).all()


def _times_weights(weights: npt.NDArray[np.float32]) -> ModelProto:
    rows, _ = weights.shape
    return parsed(f"(float[128, {rows}] x) => (y)", "[n] y = MatMul (x, w)", {"w": weights})


def test_rounding_is_to_the_nearest_and_sums_are_exact() -> None:
    if not engine().has_bf16:
        return
    rng = np.random.default_rng(0)
    x = rng.standard_normal((128, 32)).astype(np.float32)
    w = rng.standard_normal((32, 64)).astype(np.float32)
    halfway = np.float32(1 + 2.0**-8)  # to 1, the even one; 3 halves of a step to 2 of them
    x[0, :2] = halfway, halfway + 2 * np.float32(2.0**-8)
    w[0, 0] = halfway
    with compiled(_times_weights(w)) as executable:
        (found,) = executable.run({"x": x}).values()
    rounded = [one.astype(ml_dtypes.bfloat16).astype(np.float64) for one in (x, w)]
    np.testing.assert_allclose(found, rounded[0] @ rounded[1], rtol=1e-5, atol=1e-5)


def test_numbers_that_are_not_finite() -> None:
    w = np.eye(16, 32, dtype=np.float32)
    x = np.zeros((128, 16), np.float32)
    x[0, 0], x[1, 1], x[2, 2] = np.nan, np.inf, np.finfo(np.float32).max
    with compiled(_times_weights(w)) as executable:
        (found,) = executable.run({"x": x}).values()
    assert np.isnan(found[0]).all()
    assert found[1, 1] == np.inf
    assert np.isnan(found[1, 2]) or found[1, 2] == 0
    assert found[2, 2] == (np.inf if engine().has_bf16 else x[2, 2])  # the nearest number of bf16


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_goes_through_relu_and_pool(number: float) -> None:
    net = GraphBuilder("net", seed=0)
    x = net.max_pool(net.relu(net.conv(net.input("x", [1, 3, 32, 32]), 16, 3)), 2, 2)
    net.output(net.relu6(net.conv(x, 16, 1)), "y", [1, 16, 16, 16])
    model = net.build()
    inputs = random_inputs(model)
    inputs["x"][0, 0, 4, 4] = number
    with compiled(model) as executable, compiled(model, "f32") as exact:
        found, wanted = executable.run(inputs)["y"], exact.run(inputs)["y"]
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.nan_to_num(np.abs(found - wanted)).max() <= 8 * STEP * np.nanmax(wanted)
