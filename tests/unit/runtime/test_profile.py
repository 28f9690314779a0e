"""`Executable.profile`: every step of a run with its time."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chrome_traces import checked_spans
from onnx import ModelProto, numpy_helper, parser

import byoc_mlir
from byoc_mlir.errors import ExecutionError, InvalidInputError
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.profile import Profile
from byoc_mlir.runtime.profiled import CALL, TimedPart, TimedRun, profile_of
from byoc_mlir.runtime.program import Step
from byoc_mlir.runtime.report import Report
from byoc_mlir.testing.networks.decoder import DecoderSizes, decoder
from byoc_mlir.tools.byoc import main

_CONVOLUTIONS = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1, 8, 16, 16] x) => (float[1, 8, 16, 16] y) {
  [first] a = Conv<pads = [1, 1, 1, 1]>(x, w)
  [relu] b = Relu(a)
  [cos] c = Cos(b)
  [second] y = Conv<pads = [1, 1, 1, 1]>(c, w)
}
"""
_LOOP = """
<ir_version: 8, opset_import: ["" : 18]>
g (int64 count, float[8, 8] x) => (float[8, 8] y) {
  [loop] y = Loop(count, , x)
  <body = b (int64 i, bool c, float[8, 8] s) => (bool d, float[8, 8] t) {
    d = Identity(c)
    [product] p = MatMul(s, s)
    [sine] t = Sin(p)
  }>
}
"""
_PRODUCTS = 8 * 8 * 3 * 3 * 16 * 16
_X = np.random.default_rng(0).standard_normal((1, 8, 16, 16)).astype(np.float32)


def _convolutions() -> ModelProto:
    model = parser.parse_model(_CONVOLUTIONS)
    weights = np.random.default_rng(1).standard_normal((8, 8, 3, 3)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


def _profile(model: ModelProto, targets: tuple[str, ...], inputs: Any) -> Profile:
    options = {"threads": 1, "fallback": "allow", "profile": True}
    with byoc_mlir.compile(model, targets, **options) as executable:
        expected = byoc_mlir.compile(model, targets, threads=1, fallback="allow").run(inputs)
        for name, value in executable.run(inputs).items():
            np.testing.assert_array_equal(value, expected[name])
        return executable.profile(inputs, runs=5)


@pytest.mark.parametrize("targets", [(), ("dnnl",)])
def test_every_node_has_a_row_and_rows_sum_to_the_run(targets: tuple[str, ...]) -> None:
    profile = _profile(_convolutions(), targets, {"x": _X})
    assert {node for row in profile for node in row.nodes} == {"first", "relu", "cos", "second"}
    assert sum(row.milliseconds for row in profile) == pytest.approx(profile.milliseconds)
    assert profile.rows[-1].implementation == CALL
    assert sum(row.multiplications for row in profile) == 2 * _PRODUCTS


def test_steps_of_a_region_are_told_apart() -> None:
    rows = [row for row in _profile(_convolutions(), ("dnnl",), {"x": _X}) if row.region]
    steps = [row for row in rows if row.nodes]  # no reorder between layouts, nor the call itself
    of_nodes = dict.fromkeys((row.nodes, row.ops) for row in steps)  # some take several steps
    assert list(of_nodes) == [(("first", "relu"), ("Conv", "Relu")), (("second",), ("Conv",))]
    assert {row.backend for row in rows} == {"dnnl"}
    weights = 4 * 8 * 8 * 3 * 3
    assert [row.bytes for row in steps if row.bytes] == [2 * _X.nbytes + weights] * 2
    assert all(row.implementation for row in steps)
    assert all(row.layout for row in steps)


def test_bodies_of_loops_are_inside() -> None:
    x = np.random.default_rng(2).standard_normal((8, 8)).astype(np.float32)
    profile = _profile(parser.parse_model(_LOOP), (), {"count": np.int64(7), "x": x})
    nodes = {node.rpartition("/")[2] for row in profile for node in row.nodes}
    assert nodes >= {"product", "sine"}


def test_a_compiled_file_keeps_its_steps(tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    with byoc_mlir.compile(_convolutions(), (), threads=1, profile=True) as executable:
        steps = {row.nodes for row in executable.profile({"x": _X})}
        executable.export_library(path)
    with byoc_mlir.load(path) as loaded:
        assert {row.nodes for row in loaded.profile({"x": _X})} == steps


def _symbolic() -> ModelProto:
    model = parser.parse_model(_CONVOLUTIONS.replace("float[1,", "float[n,"))
    model.graph.initializer.extend(_convolutions().graph.initializer)
    return model


def _products_and_bytes(executable: Executable) -> list[tuple[int, int]]:
    """Returns the MACs and bytes of the second convolution, for one image and for three."""
    profiles = [executable.profile({"x": np.repeat(_X, n, 0)}, runs=1) for n in (1, 3)]
    steps = [[row for row in one if "second" in row.nodes] for one in profiles]
    return [
        (sum(row.multiplications for row in rows), sum(row.bytes for row in rows)) for rows in steps
    ]


_WORK = [(n * _PRODUCTS, 2 * n * _X.nbytes + 4 * 8 * 8 * 3 * 3) for n in (1, 3)]


def test_one_program_for_all_sizes(tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    with byoc_mlir.compile(_symbolic(), (), threads=1, profile=True) as executable:
        assert _products_and_bytes(executable) == _WORK
        assert executable.report().variants[0].shapes == ()  # no program for one set of them
        executable.export_library(path)
    with byoc_mlir.load(path) as loaded:
        assert _products_and_bytes(loaded) == _WORK


def test_a_program_for_each_set_of_shapes() -> None:
    options = {"threads": 1, "fallback": "allow", "profile": True}
    with byoc_mlir.compile(_symbolic(), ("dnnl",), **options) as executable:
        assert _products_and_bytes(executable) == _WORK


def test_threads_that_wait() -> None:
    options: Any = {"threads": 2, "fallback": "allow", "profile": True}
    x = np.random.default_rng(3).standard_normal((1, 8, 16, 16)).astype(np.float32)
    with byoc_mlir.compile(_convolutions(), (), **options) as executable:
        profile = executable.profile({"x": x}, runs=3)
    for row in profile:  # while one thread wakes up, the other may have nothing left to do
        assert 0 <= row.idle_milliseconds <= row.milliseconds + 1e-9
    call = profile.rows[-1]  # Python's thread is the only one that works
    assert call.idle_milliseconds == pytest.approx(call.milliseconds / 2)
    assert json.loads(profile.to_json())["idle_milliseconds"] == profile.idle_milliseconds
    assert "threads idle" in str(profile)
    counters = [
        one for one in json.loads(profile.to_chrome_trace())["traceEvents"] if one["ph"] == "C"
    ]
    assert all(-1e-9 <= one["args"]["threads"] <= 2 for one in counters)
    assert len(counters) == len(profile)


def test_idle_time_is_what_other_threads_did_not_use() -> None:
    steps = [Step(("a",), "", "loop"), Step(("b",), "", "loop"), Step(("c",), "region", "library")]
    part = TimedPart(Report(()), steps, (3.0, 3.0, 3.0), (0.0, 5.0, 0.0), threads=3)
    profile = profile_of(lambda: TimedRun({}, 9.0, (part,)), runs=1)
    assert [row.idle_milliseconds for row in profile] == pytest.approx([2000, 1000 / 3, 0, 0])


_STAGES = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[8, 16] x) => (float[8, 16] y, int64[2, m] z) {
  [sine] s = Sin(x)
  [found] z = NonZero(s)
  [cosine] y = Cos(s)
  [rows] r = Cast<to = 1>(z)
  [sum] t = ReduceSum(r)
}
"""
_TEXTS = """
<ir_version: 8, opset_import: ["" : 20]>
g (string[3] a, float[3] x) => (string[3] b, float[3] y) {
  [joined] b = StringConcat(a, a)
  [sine] y = Sin(x)
}
"""
_SEQUENCES = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[4] x, float[4] y) => (seq(float[4]) z) {
  [sine] s = Sin(x)
  [cosine] c = Cos(y)
  [both] z = SequenceConstruct(s, c)
}
"""


@pytest.mark.parametrize(
    ("text", "inputs", "nodes"),
    [
        (_STAGES, {"x": np.eye(8, 16, dtype=np.float32)}, {"sine", "found", "cosine"}),
        (
            _TEXTS,
            {"a": np.array(["a", "b", "c"], object), "x": np.ones(3, np.float32)},
            {"joined", "sine"},
        ),
        (_SEQUENCES, dict.fromkeys("xy", np.ones(4, np.float32)), {"sine", "cosine"}),
    ],
)
def test_models_of_several_parts(text: str, inputs: dict[str, Any], nodes: set[str]) -> None:
    profile = _profile(parser.parse_model(text), (), inputs)
    assert {node for row in profile for node in row.nodes} >= nodes
    assert sum(row.milliseconds for row in profile) == pytest.approx(profile.milliseconds)
    assert [row.implementation for row in profile].count(CALL) == 1


def test_text_and_documents() -> None:
    profile = _profile(_convolutions(), (), {"x": _X})
    lines = str(profile).splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) == len(profile) + 2
    document = json.loads(profile.to_json())
    assert sum(row["share"] for row in document["rows"]) == pytest.approx(1)
    assert document["rows"][0].keys() >= {"nodes", "backend", "gflops", "gbytes", "precision"}
    trace = json.loads(profile.to_chrome_trace(), parse_constant=_refused)
    spans = checked_spans(trace)
    assert len(spans) == len(profile)
    for before, after in pairwise(spans):
        assert before["ts"] + before["dur"] == pytest.approx(after["ts"])


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def test_refused() -> None:
    with byoc_mlir.compile(_convolutions(), ()) as executable:
        with pytest.raises(ExecutionError, match="compile the model with profile=True"):
            executable.profile({"x": _X})
        with pytest.raises(InvalidInputError, match="runs is 0, accepted are 1 and more"):
            executable.profile({"x": _X}, runs=0)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace = tmp_path / "model.onnx", tmp_path / "trace.json"
    path.write_bytes(_convolutions().SerializeToString())
    command = ["profile", str(path), "--targets", "", "--threads", "1", "--runs", "3"]
    assert main([*command, "--trace", str(trace)]) == 0
    assert "GFLOP/s" in capsys.readouterr().out
    assert json.loads(trace.read_text())["traceEvents"]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 3


def test_attention_over_a_prefix_counts_as_over_its_expected_length() -> None:
    model = decoder(sizes=DecoderSizes(layers=1, capacity=256))
    caches = {"past_key_values.0.key", "past_key_values.0.value"}
    with byoc_mlir.compile(model, (), threads=1, profile=True) as executable:
        shape = (1, 2, 256, 16)
        for count in (8, 9):
            profile = executable.profile(
                {
                    "input_ids": np.ones((1, count), np.int64),
                    "seqlens_k": np.array([count - 1], np.int32),
                    "total_sequence_length": np.array(count, np.int32),
                    **{name: np.zeros(shape, np.float32) for name in caches},
                },
                runs=1,
            )
            rows = [row for row in profile if "GroupQueryAttention" in row.ops]
            products = [row.multiplications for row in rows]
            keys = 128 + count  # half of the cache, and the new tokens
            assert max(products) == 2 * 4 * 16 * keys * count  # both products, 4 heads of 16
