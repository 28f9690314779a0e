"""Models whose nodes have their placement as metadata."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import byoc_mlir
from byoc_mlir.compiler.debugging.annotate import annotated
from byoc_mlir.errors import ExportError, InvalidModelError
from byoc_mlir.runtime.profile import Profile, ProfileRow
from byoc_mlir.tools.byoc import main

_BRANCHES = """
<ir_version: 8, opset_import: ["" : 18]>
g (bool c, float[4, 4] x) => (float[4, 4] y) {
  [product] p = Mul(x, x)
  s = Sin(p)
  y = If(c) <
    then_branch = t () => (float[4, 4] a) { a = Cos(s) },
    else_branch = e () => (float[4, 4] b) { b = Exp(s) }>
}
"""
_OPTIONS = ["--targets", "ccompiler", "--fallback", "allow", "--threads", "1"]


def _metadata(node: onnx.NodeProto) -> dict[str, str]:
    return {one.key: one.value for one in node.metadata_props}


def _written(folder: Path) -> str:
    path = folder / "model.onnx"
    path.write_bytes(parser.parse_model(_BRANCHES).SerializeToString())
    return str(path)


def test_each_node_says_where_it_runs(tmp_path: Path) -> None:
    out = tmp_path / "annotated.onnx"
    assert main(["report", _written(tmp_path), "--annotate", str(out), *_OPTIONS]) == 0
    model = onnx.load(out)
    onnx.checker.check_model(model)
    product, sine, branch = map(_metadata, model.graph.node)
    assert product["byoc.backend"] == "ccompiler"
    assert product["byoc.region"].startswith("ccompiler_main")
    assert sine["byoc.backend"] == "host"
    assert "no rule for sin" in sine["byoc.reason"]
    assert branch["byoc.backend"] == "host"
    inside = [_metadata(one.g.node[0])["byoc.backend"] for one in model.graph.node[2].attribute]
    assert inside == ["host", "ccompiler"]
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    inputs = {"c": np.array(True), "x": x}
    results = [
        byoc_mlir.compile(one, (), threads=1).run(inputs)["y"]
        for one in (parser.parse_model(_BRANCHES), model)
    ]
    np.testing.assert_array_equal(*results)


def test_a_profile_adds_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "annotated.onnx"
    shapes = ["--runs", "2", "--annotate", str(out), "--json"]
    assert main(["profile", _written(tmp_path), *shapes, *_OPTIONS]) == 0
    json.loads(capsys.readouterr().out)
    assert float(_metadata(onnx.load(out).graph.node[1])["byoc.milliseconds"]) >= 0


def test_again(tmp_path: Path) -> None:
    model = parser.parse_model(_BRANCHES)
    model.graph.node[0].metadata_props.add(key="mine", value="kept")
    with byoc_mlir.compile(model, (), threads=1) as executable:
        report = executable.report()
    rows = (ProfileRow(("product", "Sin_1"), ("Mul", "Sin"), "host", "", "f", milliseconds=0.25),)
    once = annotated(model, report, Profile(rows, 0.25, 1, 1))
    assert _metadata(once.graph.node[0])["byoc.together_with"] == "Sin_1"
    twice = _metadata(annotated(once, report).graph.node[0])
    assert twice["mine"] == "kept"
    assert "byoc.milliseconds" not in twice


def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = parser.parse_model(_BRANCHES)
    path, library = tmp_path / "model.onnx", tmp_path / "model.so"
    with byoc_mlir.compile(model, (), threads=1) as executable:
        executable.export_library(library)
    assert main(["report", str(library), "--annotate", str(tmp_path / "out.onnx")]) == 1
    assert InvalidModelError.__name__ in capsys.readouterr().err
    weights = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "w")
    model.graph.initializer.append(weights)
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert main(["report", str(path), "--annotate", str(elsewhere / "out.onnx"), *_OPTIONS]) == 1
    said = capsys.readouterr().err
    assert ExportError.__name__ in said
    assert "in files beside it" in said
    assert main(["report", str(path), "--annotate", str(tmp_path / "out.onnx"), *_OPTIONS]) == 0
