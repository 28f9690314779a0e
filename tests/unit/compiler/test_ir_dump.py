"""`compile(dump_ir=...)`: the IR after each pass, as files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from failing_backend import Failing
from onnx import ModelProto, numpy_helper, parser

import byoc_mlir
from byoc_mlir.errors import ByocError
from byoc_mlir.tools.byoc import main
from byoc_mlir.tools.byoc_opt import main as opt

_GRAPH = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[N, 8] x) => (float[N, 4] y) {
  [product] p = MatMul(x, w)
  [sum] s = Add(p, p)
  [cosine] y = Cos(s)
}
"""


def _model(rows: str) -> ModelProto:
    model = parser.parse_model(_GRAPH.replace("N", rows))
    weights = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    return model


def test_files_of_a_model(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "dump"
    targets = ("ccompiler",)
    with byoc_mlir.compile(_model("3"), targets, fallback="allow", dump_ir=folder) as executable:
        (region,) = executable.program.regions
    names = {path.name for path in folder.iterdir()}
    assert {"passes.txt", "model.ll", "model-optimised.ll", "model.s"} <= names
    assert f"{region}.generated" in names
    numbered = sorted(name for name in names if name[:3].isdigit())
    passes = [name[4:].removesuffix(".mlir") for name in numbered]
    for earlier, later in (
        ("import", "annotate-target"),
        ("annotate-target", "partition-graph"),
        ("partition-graph", "convert-relay-to-linalg"),
        ("convert-relay-to-linalg", "convert-to-llvm"),
    ):
        assert passes.index(earlier) < passes.index(later)
    imported = (folder / "000-import.mlir").read_text()
    assert re.search(r'relay.cos .* loc\("cosine"\)$', imported, re.MULTILINE)
    assert "unknown" not in imported
    assert "llvm.func" in (folder / numbered[-1]).read_text()
    summary = (folder / "passes.txt").read_text().splitlines()
    assert len(summary) > len(numbered)  # also the passes that changed nothing
    assert any(line.endswith(": nothing") for line in summary)
    assert any("func.call +1" in line for line in summary)


def test_a_file_is_what_the_next_pass_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    byoc_mlir.compile(_model("3"), ("ccompiler",), fallback="allow", dump_ir=tmp_path).close()
    opt([str(tmp_path / "000-import.mlir"), "-p", "partition-for{targets=ccompiler}"])
    assert 'byoc.compiler = "ccompiler"' in capsys.readouterr().out


def test_each_set_of_shapes_that_is_compiled_has_a_folder(tmp_path: Path) -> None:
    targets = ("ccompiler",)
    with byoc_mlir.compile(_model("n"), targets, fallback="allow", dump_ir=tmp_path) as executable:
        for rows in (2, 5):
            executable.run({"x": np.zeros((rows, 8), np.float32)})
    assert {path.name for path in tmp_path.iterdir()} == {"x=2x8", "x=5x8"}
    assert "tensor<5x8xf32>" in (tmp_path / "x=5x8" / "000-import.mlir").read_text()


def test_a_folder_of_many_inputs_has_a_short_name(tmp_path: Path) -> None:
    names = [f"input_{number}" for number in range(40)]
    inputs = ", ".join(f"float[n, 8] {name}" for name in names)
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 18]> g ({inputs}) => (float[n, 8] y)'
        f" {{ y = Sum({', '.join(names)}) }}"
    )
    with byoc_mlir.compile(model, (), dump_ir=tmp_path) as executable:
        executable.run({name: np.ones((2, 8), np.float32) for name in names})
    (folder,) = {path.parent.name for path in tmp_path.rglob("000-import.mlir")}
    assert folder.startswith("input_0=2x8_input_1=2x8_")


def test_the_cache_gives_nothing(tmp_path: Path) -> None:
    for name in ("first", "second"):
        folder = tmp_path / name
        byoc_mlir.compile(_model("3"), (), cache=tmp_path / "cache", dump_ir=folder).close()
        assert (folder / "model.s").exists()


@pytest.mark.parametrize("how", ["codegen", "pass", "c"])
def test_what_a_failing_backend_leaves(how: str, tmp_path: Path) -> None:
    target = f"{Failing.name}{{how={how}}}"
    byoc_mlir.compile(_model("3"), (target,), fallback="allow", dump_ir=tmp_path).close()
    assert "relay.cos" in (tmp_path / "unable_main_0.failed.mlir").read_text()
    told = (tmp_path / "unable_main_0.failed.txt").read_text()
    summary = (tmp_path / "passes.txt").read_text()
    if how == "codegen":
        assert "KeyError: 'cos'" in told
        assert "Traceback" in told
    elif how == "c":
        assert (tmp_path / "unable_main_0.generated").read_text() == "this is no C"
    else:
        (given,) = tmp_path.glob("*-failing-pass.failed.mlir")
        assert "relay.cos" in given.read_text()
        assert "failing-pass failed: ValueError: it cannot be done" in summary


def test_refused(tmp_path: Path) -> None:
    with pytest.raises(ByocError, match="dump_ir is 3"):
        byoc_mlir.compile(_model("3"), (), dump_ir=3)  # pyright: ignore[reportArgumentType]
    (tmp_path / "file").write_text("")
    with pytest.raises(ByocError, match="file"):
        byoc_mlir.compile(_model("3"), (), dump_ir=tmp_path / "file")


def test_command(tmp_path: Path) -> None:
    path, folder = tmp_path / "model.onnx", tmp_path / "dump"
    path.write_bytes(_model("3").SerializeToString())
    assert main(["compile", str(path), "--targets", "", "--dump-dir", str(folder)]) == 0
    assert (folder / "passes.txt").exists()


_STRINGS = """
<ir_version: 8, opset_import: ["" : 20]>
g (string[3] a, float[3] x) => (float[3] y, float[3] z) {
  [sine] y = Sin(x)
  [joined] b = StringConcat(a, a)
  [equal] e = Equal(b, a)
  [number] f = Cast<to = 1>(e)
  [cosine] z = Cos(f)
}
"""
_STAGES = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[3] x) => (float[3] y, float[1, m] z) {
  [sine] y = Sin(x)
  [found] i = NonZero(y)
  [number] f = Cast<to = 1>(i)
  [cosine] z = Cos(f)
}
"""


@pytest.mark.parametrize("text", [_STRINGS, _STAGES])
def test_each_part_of_a_model_has_a_folder(text: str, tmp_path: Path) -> None:
    inputs = {"x": np.ones(3, np.float32), "a": np.array(["a", "", "c"], object)}
    with byoc_mlir.compile(parser.parse_model(text), fallback="allow", dump_ir=tmp_path) as model:
        model.run({info.name: inputs[info.name] for info in model.inputs})
    imports = {path: path.read_text() for path in tmp_path.rglob("000-import.mlir")}
    with_sine, with_cosine = (
        {path for path, ir in imports.items() if op in ir} for op in ("relay.sin", "relay.cos")
    )
    parts = [path.relative_to(tmp_path).parts[0] for path in (*with_sine, *with_cosine)]
    assert len(imports) == len(parts) == 2
    assert parts[0] < parts[1]
    assert all(re.fullmatch(r"part-\d", part) for part in parts)
