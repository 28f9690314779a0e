"""`Executable.verify`, and the commands around it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import planted_backend
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.errors import ByocError, ExecutionError, InvalidModelError
from byoc_mlir.tools.byoc import main

_WRONG = f"{planted_backend.Planted.name}{{fault=operands}}"

_MODEL = """<ir_version: 10, opset_import: ["" : 18]>
net (float[N, 4] x) => (float[N, 4] y, float[4] k) <float[4] c = {1.0, 2.0, 3.0, 4.0}> {
  [table] t = Constant <value = float[4] {0.5, 0.25, 0.5, 0.125}> ()
  [sine] s = Sin (x)
  [difference] d = Sub (s, t)
  [sum] a = Add (d, c)
  [cosine] y = Cos (a)
  [known] k = Add (t, c)
}"""

_X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


def _model(rows: str = "3") -> ModelProto:
    return parser.parse_model(_MODEL.replace("N", rows))


def test_of_a_file_it_needs_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model(), path)
    with byoc_mlir.compile(path, (_WRONG,), 1, fallback="allow", cache=False) as executable:
        found = executable.verify([_X])
    assert [one.agrees for one in found.outputs] == [False, True]
    assert found.part is not None
    assert found.part.nodes == ("difference",)
    assert list(found.part.inputs) == ["s"]  # the constant beside it is in the part


def test_the_smallest_part_is_a_model_of_its_own(tmp_path: Path) -> None:
    model = _model()
    with byoc_mlir.compile(model, (_WRONG,), 1, fallback="allow", cache=False) as executable:
        part = executable.verify([_X], model=model).part
    assert part is not None
    path, inputs = part.save(tmp_path / "saved")
    onnx.checker.check_model(str(path), full_check=True)
    given = dict(np.load(inputs))
    (wanted,) = ReferenceEvaluator(str(path)).run(None, given)
    assert isinstance(wanted, np.ndarray)
    np.testing.assert_allclose(wanted, np.load(tmp_path / "saved" / "part-expected.npz")["d"])
    with byoc_mlir.compile(path, (_WRONG,), 1, fallback="allow", cache=False) as executable:
        again = executable.verify(given).part
    assert again is not None
    assert again.nodes == part.nodes


def test_symbolic_dimensions() -> None:
    model = _model("n")
    with byoc_mlir.compile(model, (_WRONG,), 1, fallback="allow", cache=False) as executable:
        found = executable.bisect([_X], model=model)
    part = found.verification.part
    assert part is not None
    assert part.nodes == ("difference",)
    assert found.names == ("planted",)


@pytest.mark.parametrize(
    ("body", "node"),
    [
        (
            """net (float[3, 4] x) => (float[3, 4] y) <bool t = {1}> {
              [choice] y = If (t) <
                then_branch = g () => (a) { u = Abs (x) a = Sub (u, x) },
                else_branch = h () => (e) { e = Neg (x) }
              >
            }""",
            "choice",
        ),
        (
            """net (float[3, 4] x) => (float[3, 4] y) { [call] a = my.f (x) [sine] y = Sin (a) }
            <domain: "my", opset_import: ["" : 18]> f (p) => (q) {
              r = Abs (p) q = Sub (r, p)
            }""",
            "call",
        ),
        (
            """net (float[3, 4] x) => (float[3, 4] y, float[3, 4] x, float[4] c)
            <float[4] c = {1.0, 2.0, 3.0, 4.0}> { [difference] y = Sub (x, c) }""",
            "difference",
        ),
    ],
    ids=["in a branch", "in a function", "beside inputs and constants"],
)
def test_a_fault_in(body: str, node: str) -> None:
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 18, "my": 1]> {body}')
    with byoc_mlir.compile(model, (_WRONG,), 1, fallback="allow", cache=False) as executable:
        found = executable.bisect([_X], model=model)
    part = found.verification.part
    assert part is not None
    assert part.nodes == (node,)
    assert (found.kind, found.names) == ("backend", ("planted",))


def test_weights_in_files_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    model = _model()
    model.graph.initializer[0].CopyFrom(
        onnx.numpy_helper.from_array(np.arange(1, 5, dtype=np.float32), "c")
    )
    onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights")
    with byoc_mlir.compile(path, (_WRONG,), 1, fallback="allow", cache=False) as executable:
        found = executable.verify([_X])
        part = found.part
    assert part is not None
    assert part.nodes == ("difference",)


def test_all_nodes_of_a_model_that_agrees() -> None:
    model = _model()
    with byoc_mlir.compile(model, (), 1, cache=False) as executable:
        found = executable.verify([_X], model=model, nodes=True)
    assert found.agrees
    assert [row.node for row in found.nodes] == ["sine", "difference", "sum", "cosine", "known"]
    assert all(row.difference.largest < 1e-5 for row in found.nodes)
    assert "nodes, from the model's inputs" in str(found)


def test_tolerances() -> None:
    model = _model()
    with byoc_mlir.compile(model, (_WRONG,), 1, fallback="allow", cache=False) as executable:
        (row, _) = executable.verify([_X], model=model).outputs
        largest = row.difference.largest
        assert executable.verify([_X], model=model, atol=1.01 * largest, rtol=0.0).agrees
        assert not executable.verify([_X], model=model, atol=0.99 * largest, rtol=0.0).agrees


def test_refused() -> None:
    model = _model()
    with byoc_mlir.compile(model, (), 1, cache=False) as executable:
        with pytest.raises(InvalidModelError, match="give it to verify"):
            executable.verify([_X])
        with pytest.raises(ByocError, match="against is 'tvm', accepted are 'onnxruntime'"):
            executable.verify([_X], model=model, against="tvm")


def test_an_executable_from_a_file(tmp_path: Path) -> None:
    with byoc_mlir.compile(_model(), (), 1, cache=False) as executable:
        executable.export_library(tmp_path / "model.so")
    with (
        byoc_mlir.load(tmp_path / "model.so") as loaded,
        pytest.raises(ExecutionError, match="compile the model to verify it"),
    ):
        loaded.verify([_X])


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "model.onnx")
    onnx.save(_model("n"), path)
    shape = ["--shape", "x=3,4", "--threads", "1", "--fallback", "allow"]
    assert main(["verify", path, *shape, "--targets", "", "--against", "reference"]) == 0
    assert capsys.readouterr().out.startswith("the model agrees with reference\n")
    saved = ["--save", str(tmp_path / "saved")]
    assert main(["bisect", path, *shape, "--targets", _WRONG, *saved]) == 1
    out = capsys.readouterr().out
    assert "difference (Sub) on planted in region" in out
    assert "the difference goes away without the backend 'planted': 2 tries" in out
    part = str(tmp_path / "saved" / "part.onnx")
    again = ["verify", part, "--inputs", str(tmp_path / "saved" / "part.npz"), "--json"]
    assert main([*again, "--targets", _WRONG]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["part"]["nodes"] == ["difference"]
    assert main([*again, "--targets", ""]) == 0
