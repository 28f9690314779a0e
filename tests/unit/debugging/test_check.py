"""`byoc check`: the parts of a model that cannot be compiled."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.tools.byoc import main

_HEAD = '<ir_version: 10, opset_import: ["" : 18, "my": 1, "ai.onnx.ml": 3]>'

_UNKNOWN = """net (float[2, 3] x, int64[2] k) => (float[2, 3] y, float[2, 3] z) {
  [a] a = Sin (x)
  [b] b = my.Foo (a)
  [c] c = my.Foo (x)
  [d] d = my.Bar <n = 3> (k)
  [e] y = Add (b, c)
  [f] z = Gone (a)
}"""


def _written(folder: Path, body: str) -> str:
    path = folder / "model.onnx"
    onnx.save(parser.parse_model(f"{_HEAD} {body}"), path)
    return str(path)


def test_all_that_is_not_supported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _written(tmp_path, _UNKNOWN)
    assert main(["check", path]) == 1
    out = capsys.readouterr().out
    assert all(len(line) <= 80 for line in out.splitlines())
    text = " ".join(out.split())
    assert "2 unsupported my.Foo, opset 1 of float32: not supported: domain 'my' has no" in text
    assert "1 unsupported my.Bar, opset 1 of int64: " in text
    assert "1 unsupported Gone, opset 18 of float32: there is no such op in opset 18" in text
    assert text.endswith("6 nodes: 2 supported, 4 unsupported")
    assert " Sin" not in text
    assert main(["check", path, "--all"]) == 1
    assert "1 supported Sin, opset 18 of float32" in " ".join(capsys.readouterr().out.split())
    assert main(["check", path, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["counts"] == {"supported": 2, "interpreted": 0, "unsupported": 4}
    assert document["ops"][0]["nodes"] == ["b", "c"]


def test_a_node_that_its_form_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _written(
        tmp_path,
        """net (float[2, 3] x, int64[1] k) => (float[N, 3] y) {
          [rows] r = ConstantOfShape (k)
          [grown] y = Expand (x, k)
        }""",
    )
    assert main(["check", path]) == 0
    assert "shapes follow from the values of k" in capsys.readouterr().out


def test_symbolic_dimensions_and_branches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = _written(
        tmp_path,
        """net (float[N, 3] x, bool c) => (float[N, 3] y) {
          [choice] y = If (c) <
            then_branch = g () => (t) { [inner] t = my.Foo (x) },
            else_branch = h () => (e) { e = Neg (x) }
          >
        }""",
    )
    assert main(["check", path]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "1 unsupported my.Foo, opset 1 of float32: not supported" in text
    assert "(choice/inner)" in text


def test_strings_and_computed_shapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _written(
        tmp_path,
        """net (float[4] x) => (int64[1, n] y) { [found] y = NonZero (x) }""",
    )
    assert main(["check", path]) == 0
    assert "checked by name alone, as shapes follow from" in capsys.readouterr().out


def test_networks_are_supported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(NETWORKS["lstm2"](steps=4), path)
    assert main(["check", str(path)]) == 0
    assert "unsupported" not in capsys.readouterr().out
