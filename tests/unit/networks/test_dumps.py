"""Dumps that `byoc-opt` and upstream's tools read, after every pass of a compilation.

`tools/rereading.py` does the same for all networks.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from helpers.models import model_of, node, parsed
from onnx import ModelProto
from rereading import UPSTREAM, assert_same_numbers, upstream_refusals

from byoc_mlir import compile
from byoc_mlir.tools.byoc_opt import main


def _odd_names() -> ModelProto:
    model = parsed(
        "(float[3,5] x) => (float[3] y, float[3,5] z)",
        "a = Mul (x, c) s = Softmax (a) z = Max (s, d) y = ReduceSum <keepdims = 0> (s, one)",
        {
            "c": np.arange(15, dtype=np.float32).reshape(3, 5),
            "d": np.array([-np.inf, np.nan, 1e-45, -0.0, 12345678], np.float32),
            "one": np.array([1]),
        },
    )
    graph = model.graph
    renamed = {"x": '"', "y": "\n", "z": "\u00e9"}
    for value in (*graph.input, *graph.output):
        value.name = renamed[value.name]
    for each in graph.node:
        each.name = f"{each.op_type} \\ %s"
        each.input[:] = [renamed.get(name, name) for name in each.input]
        each.output[:] = [renamed.get(name, name) for name in each.output]
    return model


def _layers() -> ModelProto:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 3, 9, 9)).astype(np.float32)
    weights = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
    matrix = rng.standard_normal((32, 24)).astype(np.float32)
    nodes = [
        node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("MaxPool", "r", "p", kernel_shape=[4, 4], strides=[4, 4]),
        node("Flatten", "p", "f"),
        node("MatMul", "f m", "g"),
        node("LogSoftmax", "g", "y"),
    ]
    return model_of(nodes, {"x": x}, {"w": weights, "m": matrix})


def _quantised() -> ModelProto:
    rng = np.random.default_rng(0)
    return parsed(
        "(float[4,40] x) => (float[4,24] y)",
        """q = QuantizeLinear (x, s, z)
        m = QLinearMatMul (q, s, z, w, t, v, s, z)
        y = DequantizeLinear (m, s, z)""",
        {
            "s": np.float32(0.03),
            "z": np.uint8(128),
            "w": rng.integers(-127, 128, (40, 24), dtype=np.int8),
            "t": np.float32(0.01),
            "v": np.int8(0),
        },
    )


def _symbolic() -> ModelProto:
    return parsed(
        "(float[N,4] x, float[N,1] b) => (float[N,4] y, float[4] m)",
        "e = Exp (x) y = Add (e, b) m = ReduceMean <axes = [0], keepdims = 0> (y)",
    )


def _recurrent() -> ModelProto:
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in _LSTM.items()}
    x = arrays.pop("x")
    nodes = [node("LSTM", "x w r b", "a h", hidden_size=6)]
    return model_of(nodes, {"x": x}, arrays, ["h"])


def _suppression() -> ModelProto:
    """Returns a model with `scf.while`, whose location xDSL prints before its regions, too."""
    return parsed(
        "(float[1,6,4] b, float[1,1,6] s) => (int64[n,3] y)",
        "y = NonMaxSuppression (b, s, most, overlap)",
        {"most": np.array([3]), "overlap": np.array([0.5], np.float32)},
    )


_LSTM = {"x": (5, 1, 3), "w": (1, 24, 3), "r": (1, 24, 6), "b": (1, 48)}
_MODELS = {
    "odd names": _odd_names,
    "quantised": _quantised,
    "symbolic": _symbolic,
    "recurrent": _recurrent,
    "suppression": _suppression,
}


@pytest.mark.parametrize("name", _MODELS)
def test_a_compilation_goes_on_with_each_dump(tmp_path: Path, name: str) -> None:
    assert_same_numbers(_MODELS[name](), tmp_path, targets=(), threads=2)
    if UPSTREAM is None:
        return
    refusals = upstream_refusals(tmp_path)
    if name == "symbolic":  # in the `llvm` dialect; before, symbols stand in types of memory
        last = max(file.name for file in tmp_path.rglob("*.mlir"))
        refusals = [text for text in refusals if text.startswith(last)]
    # operands of VNNI's products are words in LLVM 19, bytes in LLVM 22
    assert [text for text in refusals if "vpdpbusd" not in text] == []


def test_with_regions_of_a_backend(tmp_path: Path) -> None:
    target = "dnnl{convolution=direct,layout=plain}"
    assert_same_numbers(_layers(), tmp_path, targets=(target,), threads=1, prune="off")


def test_byoc_opt_reads_each_file(tmp_path: Path) -> None:
    with compile(_recurrent(), (), dump_ir=tmp_path, cache=False):
        files = sorted(tmp_path.glob("*.mlir"))
    assert len(files) > 8
    for file in files:
        with redirect_stdout(io.StringIO()) as printed:
            assert main([str(file), "--print-debuginfo"]) == 0, file.name
        assert printed.getvalue().replace(" loc(unknown)", "").strip() == file.read_text().strip()
