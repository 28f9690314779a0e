"""`byoc-opt --verify-diagnostics`, and text that goes to and from upstream's tools."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from onnx import parser, save

from byoc_mlir.tools.byoc_opt import main

WRONG = """func.func @f(%x: tensor<4xf32>) -> tensor<5xf32> {
  {above}
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<5xf32>{same}
  {below}
  func.return %0 : tensor<5xf32>
}
"""
RIGHT = WRONG.replace("5xf32", "4xf32")


def verified(folder: Path, text: str, **comments: str) -> int:
    for name in ("above", "same", "below"):
        text = text.replace(f"{{{name}}}", comments.get(name, ""))
    path = folder / "model.mlir"
    path.write_text(text)
    return main([str(path), "--verify-diagnostics", "--split-input-file"])


@pytest.mark.parametrize(
    "comments",
    [
        {"above": "// expected-error @+1 {{has type tensor<5xf32>}}"},
        {"above": "// expected-error @below {{has type}}"},
        {"above": "// expected-error @unknown {{has type}}"},
        {"same": " // expected-error {{has type}}"},
        {"below": "// expected-error@-1 {{has type}}"},
        {"below": "// expected-error @above {{has type}}"},
    ],
)
def test_an_error_is_found_where_it_is_expected(tmp_path: Path, comments: dict[str, str]) -> None:
    assert verified(tmp_path, WRONG, **comments) == 0


@pytest.mark.parametrize(
    ("text", "comments", "said"),
    [
        (WRONG, {}, "line 3: unexpected error:"),
        (RIGHT, {"above": "// expected-error @below {{any}}"}, 'line 3: expected error "any"'),
        (WRONG, {"above": "// expected-error @below {{other}}"}, "line 3: unexpected error:"),
        (WRONG, {"above": "// expected-error {{has type}}"}, "line 3: unexpected error:"),
        (WRONG, {"above": "// expected-warning @below {{has type}}"}, "unexpected error:"),
        (WRONG, {"above": "// expected-note @below {{has type}}"}, "expected note"),
        (RIGHT + "// -----\n" + WRONG, {}, "line 10: unexpected error:"),
    ],
)
def test_what_differs_from_the_comments_fails(
    tmp_path: Path,
    text: str,
    comments: dict[str, str],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert verified(tmp_path, text, **comments) == 1
    assert said in capsys.readouterr().err


def test_text_that_does_not_parse_is_an_error_at_its_line(tmp_path: Path) -> None:
    text = "// expected-error @below {{not registered}}\nfunc.func private @f(!no.type)\n"
    assert verified(tmp_path, text) == 0


@pytest.mark.parametrize("flag", ["--time-passes", "--print-between-passes"])
def test_what_is_no_ir_goes_to_stderr(
    tmp_path: Path, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(RIGHT.replace("{above}", "").replace("{same}", "").replace("{below}", ""))
    assert main([str(path), "-p", "simplify,fold-constants"]) == 0
    plain = capsys.readouterr().out
    assert main([str(path), "-p", "simplify,fold-constants", flag]) == 0
    printed = capsys.readouterr()
    assert printed.out == plain
    assert "simplify" in printed.err


def test_a_dash_is_a_stream(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"func.func private @f()")))
    assert main(["-", "-o", "-"]) == 0
    assert "@f" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


MODELS = {
    "f32": "(float[4,8] x) => (float[4] y) <int64[1] a = {1}> { t = ReduceSum<keepdims=0>(x, a)"
    " y = Relu(t) }",
    "u8": "(uint8[4] x) => (uint8[4] y) { y = Add(x, x) }",
}


@pytest.fixture(scope="module", params=MODELS)
def dumped(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    import byoc_mlir

    folder = tmp_path_factory.mktemp("dump")
    save(
        parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {MODELS[request.param]}'),
        folder / "m.onnx",
    )
    byoc_mlir.compile(folder / "m.onnx", targets=(), threads=1, dump_ir=folder / "d").close()
    return sorted((folder / "d").glob("*.mlir"))


def test_every_dump_is_read_again(dumped: list[Path]) -> None:
    assert len(dumped) > 5
    for path in dumped:
        assert main([str(path)]) == 0, path


@pytest.mark.skipif(shutil.which("mlir-opt-19") is None, reason="needs mlir-opt of LLVM 19")
@pytest.mark.parametrize("form", [[], ["--print-op-generic"]])
def test_upstream_reads_dumps_of_its_dialects(
    dumped: list[Path], form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    read = 0
    for path in dumped:
        capsys.readouterr()
        main([str(path), *form])
        text = capsys.readouterr().out
        if "relay." in text or "host." in text:
            continue
        done = subprocess.run(["mlir-opt-19"], input=text, capture_output=True, text=True)
        assert done.returncode == 0, (path, done.stderr)
        read += 1
    assert read >= 3
