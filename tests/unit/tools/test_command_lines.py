"""Command lines of `byoc`: typed messages, suggestions, JSON, 80 columns."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import cli_models
import numpy as np
import onnx
import onnx.parser
import pytest

from byoc_mlir.runtime.report import RegionTimes, Report, ReportRow
from byoc_mlir.tools.byoc import COMMANDS, main
from byoc_mlir.tools.commands.report import grouped_text

TARGETS = ["--targets", "dnnl", "--threads", "1"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return cli_models.written(tmp_path_factory.mktemp("models"))


def _called(args: list[str]) -> int | str | None:
    try:
        return main(args)
    except SystemExit as left:
        return left.code


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("verfy MODEL", "did you mean 'verify'?"),
        ("exlain MODEL --node conv", "did you mean 'explain'?"),
        ("report MODEL --jsn", "unrecognized arguments: --jsn; did you mean '--json'?"),
        ("run MODEL --tagets=dnnl", "did you mean '--targets'?"),
        ("bench MODEL --runs many", "'many' is no whole number of 1 and more"),
        ("run MODEL --precision f23", "invalid choice: 'f23'"),
        ("run MODEL --precision f23", "did you mean 'f32'?"),
        ("report resnet51", "did you mean 'resnet50'?"),
        ("report MODEL --targets dnll", "no backend is named 'dnll'"),
        ("report MODEL --targets dnll", "did you mean 'dnnl'?"),
        ("report MODEL --disable simplfy", "did you mean 'simplify'?"),
        ("report MODEL --disable bufferize", "the pass 'bufferize' cannot be disabled"),
        ("report MODEL --disable", "--disable: expected one argument"),
        ("verify MODEL --against onnxruntim", "did you mean 'onnxruntime'?"),
        ("verify MODEL --rtol -1", "'-1' is no number of 0 and more"),
        ("verify MODEL --atol small", "'small' is no number of 0 and more"),
        ("verify MODEL --inputs MODEL", "is not an .npz file of arrays"),
        ("verify MODEL --inputs OTHER", "missing"),
        ("verify MODEL.so", "InvalidModelError"),
        ("bisect FOLDER", "there is no file"),
        ("explain MODEL", "one of the arguments --node --pattern is required"),
        ("explain MODEL --node conv --pattern dnnl.x", "not allowed with argument"),
        ("explain MODEL --node [conv]", "did you mean '/[conv]'?"),
        ("explain MODEL --pattern conv", "no backend has a pattern 'conv'"),
        ("explain MODEL --pattern dnnl.conv2d_bias_rellu", "did you mean 'dnnl.conv2d_bias_relu'"),
        ("check TEXT", "not an ONNX model"),
        ("check nowhere.mlir", "there is no file 'nowhere.mlir'"),
        ("check MODEL --shape x=1,2", "has rank 4, the shape given is [1, 2]"),
        ("bench MODEL --size batch", "'batch' is not of the form NAME=SIZE"),
        ("tune MODEL --size batches=2", "there is no symbolic dimension batches"),
        ("compile MODEL --output", "expected one argument"),
        ("compile MODEL -o model.dll", "must end in .so"),
        ("profile MODEL --trace /nowhere/trace.json", "the operating system refused"),
        ("view MODEL -o /nowhere/page.html", "the operating system refused"),
        ("cache TEXT --json", "cannot be made"),
        ("new-backend import --json", "a Python identifier in lower case"),
        ("--targets dnnl", "invalid choice: 'dnnl'"),
        ("report --help-me", "unrecognized arguments"),
        ("doctor --import nothing_of_that_name", "nothing_of_that_name"),
    ],
)
def test_nonsense(
    line: str, said: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    np.savez(tmp_path / "other.npz", z=np.zeros(3))
    words = {
        "MODEL": path,
        "MODEL.so": f"{path}.so",
        "TEXT": str(tmp_path / "text.onnx"),
        "OTHER": str(tmp_path / "other.npz"),
        "FOLDER": str(tmp_path),
    }
    assert _called([words.get(word, word) for word in line.split()]) in (1, 2)
    printed = capsys.readouterr().err
    assert said in printed
    assert "Traceback" not in printed
    assert "InternalError" not in printed


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--limit", "nodes=3"], "the limit is 3; to raise it, give --limit nodes=NUMBER"),
        (["--fallback", "warn"], "--fallback allow silences this, --fallback forbid makes it an"),
    ],
)
def test_advice_is_for_the_command_line(
    args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "a = MatMul (x, x) b = Abs (a) c = Sin (b) d = Exp (c) y = Neg (d)"
    text = f"net (double[2, 2] x) => (double[2, 2] y) {{ {body} }}"
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>{text}'), path)
    main(["report", str(path), *args, *TARGETS])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("run MODEL --compare f32", "outputs"),
        ("compile MODEL", "code_bytes"),
        ("compile MODEL --time-passes -o FOLDER/model.so", "files"),
        ("report MODEL", "nodes"),
        ("view MODEL -o FOLDER/page.html", "bytes"),
        ("bench MODEL --runs 2 --warmup 0", "milliseconds"),
        ("profile MODEL --runs 2", "rows"),
        ("verify MODEL", "agrees"),
        ("bisect MODEL", "kind"),
        ("explain MODEL --node /[conv]", "patterns"),
        ("explain MODEL --pattern dnnl.conv2d_bias", "accepted"),
        ("check MODEL", "counts"),
        ("cache FOLDER/cache", "cache"),
        ("cache FOLDER/cache --clear", "cache"),
        ("new-backend json_npu --into FOLDER", "folder"),
        ("doctor", ""),
        ("tune MODEL --seconds 0.001", "reason"),
    ],
)
def test_each_command_prints_json(
    line: str, key: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [word.replace("MODEL", path).replace("FOLDER", str(tmp_path)) for word in line.split()]
    compiles = "MODEL" in line and "check" not in line
    assert main([*args, "--json", *(TARGETS if compiles else ())]) == 0
    document = json.loads(capsys.readouterr().out)
    assert key in document if key else document


def test_each_command_is_among_them() -> None:
    names = {command.__name__.rpartition(".")[2].rstrip("_") for command in COMMANDS}
    assert names == {
        *("run", "compile", "report", "bench", "profile", "verify", "bisect", "explain", "check"),
        *("cache", "demo", "doctor", "new_backend", "view", "serve", "tune", "completion"),
    }


@pytest.mark.parametrize(
    "line",
    [
        "run MODEL --compare f32",
        "compile MODEL --time-passes",
        "report MODEL",
        "bench MODEL --runs 2",
        "profile MODEL --runs 2",
        "verify MODEL",
        "bisect MODEL",
        "explain MODEL --node /[conv]",
        "explain MODEL --pattern dnnl.conv2d_bias",
    ],
)
def test_tables_have_80_columns(
    line: str, path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*(word.replace("MODEL", path) for word in line.split()), *TARGETS]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(len(one) for one in lines if path not in one) <= 80


def test_a_report_groups_nodes(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", path, *TARGETS]) == 0
    out = capsys.readouterr().out
    assert "    1 Sin: host; dnnl: no rule for sin\n" in out
    assert out.endswith("8 nodes: 3 dnnl, 2 folded, 2 host, 1 removed\n")


def test_a_report_compares_places() -> None:
    kept = RegionTimes("npu", "measured", 1.5, 2.0)
    left = RegionTimes("npu", "estimated", None, 0.25)
    rows = (
        ReportRow("first", "Conv", "npu", "npu_main_0", times=kept),
        ReportRow("second", "Relu", "npu", "npu_main_0", times=kept),
        ReportRow("third", "Sin", "host", reason="no rule"),
        ReportRow("fourth", "MatMul", "host", reason="demoted", times=left),
        ReportRow("last", "Add", "host", reason="demoted", times=left),
    )
    assert grouped_text(Report(rows)).splitlines()[-3:-1] == [
        "npu_main_0, measured: npu 1.500 ms, host 2.000 ms",
        "back on the host, fourth to last, estimated: npu unknown, host 0.250 ms",
    ]


def test_artifacts_are_timed_and_reported_on(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = str(tmp_path / "model.so")
    assert main(["compile", path, "-o", library, *TARGETS]) == 0
    capsys.readouterr()
    assert main(["report", library]) == 0
    assert "8 nodes" in capsys.readouterr().out
    assert main(["bench", library, "--runs", "2", "--warmup", "0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 2


def test_the_compiler_is_imported_when_it_is_needed() -> None:
    code = "import sys, byoc_mlir.tools.byoc; print('byoc_mlir.compiler.pipeline' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("module", ["byoc", "byoc_opt"])
def test_commands_run_as_modules(module: str) -> None:
    command = [sys.executable, "-m", f"byoc_mlir.tools.{module}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
