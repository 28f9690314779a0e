"""Excerpts of IR and code for nodes and regions, from the files of a dump."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import byoc_mlir
from byoc_mlir.tools.byoc import main
from byoc_mlir.view.excerpts import Details, fitted, read_details

_GRAPH = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N, 8] x) => (float[N, 4] y) {
  [product] p = MatMul(x, w)
  [sum] s = Add(p, p)
  [cosine] y = Cos(s)
}
"""
_SUM = 'a "quoted" sum'


def _model(rows: str = "3") -> ModelProto:
    model = parser.parse_model(_GRAPH.replace("N", rows))
    model.graph.node[1].name = _SUM
    weights = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    byoc_mlir.compile(_model(), ("ccompiler",), fallback="allow", dump_ir=folder).close()
    return folder


def test_the_path_of_a_node(dump: Path) -> None:
    nodes = read_details(dump).nodes
    assert set(nodes) == {"product", _SUM, "cosine"}
    title, text = nodes[_SUM][0]
    assert title == "as imported"
    assert re.fullmatch(r"%\w+ = relay\.add %\w+, %\w+ : .*", text)
    titles = [title for title, _ in nodes["cosine"]]
    assert "after annotate-target" in titles
    assert "after convert-relay-to-linalg" not in titles
    assert "no rule" in nodes["cosine"][-1][1]


def test_regions_and_functions(dump: Path) -> None:
    details = read_details(dump)
    ((region, texts),) = details.regions.items()
    assert texts[0][0] == "after partition-graph"
    assert texts[0][1].startswith(f"func.func private @{region}(")
    assert texts[0][1].splitlines()[-1].startswith("}")
    assert "#include" in details.functions[region]
    (cosine,) = details.calls["cosine"]
    assert details.functions[cosine].startswith("define ")
    assert details.functions[cosine].endswith("\n}")


def test_folders_of_several_shapes_are_read(tmp_path: Path) -> None:
    with byoc_mlir.compile(
        _model("n"), ("ccompiler",), fallback="allow", dump_ir=tmp_path
    ) as model:
        for rows in (2, 5):
            model.run({"x": np.zeros((rows, 8), np.float32)})
    assert "tensor<5x4xf32>" in read_details(tmp_path).nodes["cosine"][0][1]


def test_long_texts_are_cut() -> None:
    text = "\n".join(map(str, range(2000)))
    details = Details(functions={"long": text, "short": "1\n2"})

    def packed(found: Details) -> bytes:
        return json.dumps(vars(found)).encode()

    document = json.loads(fitted(details, packed, 1000))
    assert document["functions"]["short"] == "1\n2"
    first, *_, last = document["functions"]["long"].splitlines()
    assert first == "0"
    assert re.fullmatch(r"… and \d+ more lines: see compile\(dump_ir=…\)", last)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "net.onnx", tmp_path / "page.html"
    path.write_bytes(_model().SerializeToString())
    options = ["--targets", "ccompiler", "--fallback", "allow", "--threads", "1"]
    assert main(["view", str(path), "-o", str(page), "--profile", "--runs", "2", *options]) == 0
    assert f"wrote {page}" in capsys.readouterr().out
    text = page.read_text()
    assert "<title>net</title>" in text
    details = _details_of(text)
    assert details["nodes"]["product"][0][0] == "as imported"
    library = tmp_path / "net.so"
    assert main(["compile", str(path), "-o", str(library), *options]) == 0
    assert main(["view", str(library), "-o", str(page)]) == 0
    assert '"name": "cosine"' in page.read_text()


def _details_of(page: str) -> dict[str, Any]:
    (packed,) = re.findall(r'<script id="details" type="text/plain">(.*?)</script>', page)
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(packed)))
    return found
