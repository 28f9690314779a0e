"""`compile(disable=…)`: passes, patterns and backends that are disabled."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import byoc_mlir
from byoc_mlir.abi import Precision
from byoc_mlir.compiler.disable import OPTIONAL_PASSES, REQUIRED_PASSES
from byoc_mlir.errors import BackendError, ByocError
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime
from byoc_mlir.tools.byoc import main
from byoc_mlir.tools.passes import all_passes

_HEAD = '<ir_version: 10, opset_import: ["" : 18]>'

_BODIES = {
    "convolutions": """(float[1, 8, 12, 12] x) => (float[1, 4, 24, 24] y)
    <float[8, 8, 3, 3] w, float[8] s, float[8, 4, 2, 2] t> {
      p = Conv <pads = [1, 1, 1, 1]> (x, w)
      n = BatchNormalization (p, s, s, s, s)
      r = Relu (n)
      i = Identity (r)
      q = Conv <pads = [1, 1, 1, 1]> (i, w)
      y = ConvTranspose <strides = [2, 2]> (q, t)
    }""",
    "products": """(float[4, 16] x) => (float[4, 16] y) <float[16, 16] w, float[16] b> {
      p = MatMul (x, w)
      a = Add (p, b)
      c = Neg (b)
      r = Add (a, c)
      l = Tanh (r)
      m = Identity (l)
      y = MatMul (m, w)
    }""",
    "halves": """(float16[4, 16] x) => (float16[4, 16] y) <float16[16, 16] w> {
      p = MatMul (x, w)
      y = Tanh (p)
    }""",
    "bytes": """(float[1, 8, 6, 6] x) => (float[1, 8, 6, 6] y)
    <float one = {0.03125}, int8 zero = {0}, int8[8, 8, 3, 3] w> {
      a = QuantizeLinear (x, one, zero)
      b = DequantizeLinear (a, one, zero)
      v = DequantizeLinear (w, one, zero)
      c = Conv <pads = [1, 1, 1, 1]> (b, v)
      d = QuantizeLinear (c, one, zero)
      y = DequantizeLinear (d, one, zero)
    }""",
    "roundings": """(float[4] x) => (float[4] y) {
      f = Floor (x)
      y = Floor (f)
    }""",
    "branches": """(float[4] x) => (float[4] y) <bool always = {1}> {
      y = If (always) <
        then_branch = g () => (t) { t = Abs (x) },
        else_branch = h () => (e) { e = Neg (x) }
      >
    }""",
}

_EXERCISED_BY: Mapping[str, str] = {
    "widen-16-bit-floats": "halves",
    "widen-products": "halves",
    **dict.fromkeys(
        ("fake-quantization-to-integer", "convolutions-to-float", "lower-integer-products"),
        "bytes",
    ),
    "drop-unused-functions": "branches",
    "merge-idempotent-ops": "roundings",
    **dict.fromkeys(
        ("fold-constants", "to-mixed-precision", "split-products", "pack-weights"), "products"
    ),
}
"""Model that a pass changes; `convolutions` for all other passes."""


def _model(name: str) -> ModelProto:
    model: ModelProto = parser.parse_model(f"{_HEAD} net {_BODIES[name]}")
    rng = np.random.default_rng(0)
    known = {tensor.name for tensor in model.graph.initializer}
    for value in list(model.graph.value_info):
        if value.name in known:
            continue
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        kind = value.type.tensor_type.elem_type
        arrays = {
            1: rng.uniform(0.1, 0.5, shape).astype(np.float32),
            3: rng.integers(-9, 9, shape, np.int8),
            10: rng.uniform(0.1, 0.5, shape).astype(np.float16),
        }
        model.graph.initializer.append(numpy_helper.from_array(arrays[kind], value.name))
    return model


def test_each_pass_may_be_left_out_or_not() -> None:
    assert not set(OPTIONAL_PASSES) & set(REQUIRED_PASSES)
    assert {*OPTIONAL_PASSES, *REQUIRED_PASSES} == set(all_passes())


@pytest.mark.parametrize("name", OPTIONAL_PASSES)
def test_a_model_is_right_without_a_pass(name: str) -> None:
    """Checks passes of the host compiler on the host, others with oneDNN."""
    is_of_host = all_passes()[name]().__module__.startswith("byoc_mlir.lowering")
    targets = () if is_of_host else ("dnnl",)
    which = _EXERCISED_BY.get(name, "convolutions")
    model = _model(which)
    inputs = random_inputs(model)
    precisions: Mapping[str, Precision] = {"to-mixed-precision": "bf16", "split-products": "bf16x3"}
    precision: Precision = precisions.get(name, "f32")
    with byoc_mlir.compile(
        model, targets, 1, precision, "allow", cache=False, disable=[name]
    ) as executable:
        got = executable.run(inputs)
    tolerance = {"halves": 4e-3, "bytes": 2e-2}.get(which, 1e-4)
    assert_agrees(got, run_onnxruntime(model, inputs), tolerance)


def test_a_pass_does_not_run(tmp_path: Path) -> None:
    for names in ((), ("simplify",)):
        folder = tmp_path / "-".join(names)
        byoc_mlir.compile(_model("products"), (), 1, dump_ir=folder, disable=names).close()
        assert (" simplify" in (folder / "passes.txt").read_text()) == (not names)


def test_a_pattern_is_left_out() -> None:
    model = _model("convolutions")
    found: dict[str, Mapping[str, int]] = {}
    for disabled in ("", "dnnl.conv2d_bias_relu"):
        names = [disabled] if disabled else []
        with byoc_mlir.compile(
            model, ("dnnl",), 1, fallback="allow", cache=False, disable=names
        ) as executable:
            found[disabled] = executable.report().composites
    assert "dnnl.conv2d_bias_relu" in found[""]
    assert "dnnl.conv2d_bias_relu" not in found["dnnl.conv2d_bias_relu"]
    assert "dnnl.conv2d_bias" in found["dnnl.conv2d_bias_relu"]


def test_a_backend_is_left_out() -> None:
    model = _model("products")
    targets = ("dnnl{winograd=off}", "ccompiler")
    with byoc_mlir.compile(
        model, targets, 1, fallback="allow", cache=False, disable=["dnnl"]
    ) as executable:
        assert "ccompiler" in executable.report().counts()
        assert "dnnl" not in executable.report().counts()


def test_the_fallback_interpreter_is_left_out() -> None:
    body = "(string[4] x) => (string[4] y) { y = StringConcat (x, x) }"
    model = parser.parse_model(f"{_HEAD.replace('18', '20')} net {body}")
    with pytest.raises(BackendError, match="no backend runs such nodes"):
        byoc_mlir.compile(model, (), cache=False, disable=["reference"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["bufferize"], "the pass 'bufferize' cannot be disabled: later passes accept"),
        (["simplfy"], "'simplfy', which is no pass, pattern or backend; did you mean 'simplify'"),
        (["dnnl.conv2d_bias_rellu"], "did you mean 'dnnl.conv2d_bias_relu'"),
        (["prepare-dnnl-regions"], "backend 'dnnl' needs it for its regions"),
        (["?"], "passes that can be disabled are widen-16-bit-floats"),
        ("simplify", "accepted is a sequence of names"),
        ([3], "accepted is a sequence of names"),
    ],
)
def test_refused(names: list[str], said: str) -> None:
    with pytest.raises(ByocError, match=said.replace("?", "[?]")):
        byoc_mlir.compile(_model("products"), (), disable=names)


def test_it_is_part_of_the_cache_key(tmp_path: Path) -> None:
    model = _model("convolutions")
    for name in ("", "dnnl.conv2d_bias_relu"):
        names = [name] if name else []
        with byoc_mlir.compile(
            model, ("dnnl",), 1, fallback="allow", cache=tmp_path, disable=names
        ) as executable:
            assert bool(name) == ("dnnl.conv2d_bias_relu" not in executable.report().composites)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(_model("products").SerializeToString())
    args = ["report", str(path), "--targets", "dnnl", "--json", "--disable", "dnnl"]
    assert main([*args, "--disable", "simplify"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert not any(row["placement"] == "dnnl" for row in document["nodes"])
    assert main([*args, "--disable", "simplfy"]) == 1
    assert "did you mean 'simplify'?" in capsys.readouterr().err
