"""Command `byoc-opt`, in process: ONNX input, `--explain`, messages and exit codes."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import cli_models
import pytest

from byoc_mlir.tools.byoc_opt import main

ANNOTATED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = relay.exp %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = byoc.compiler_begin %0 for "npu" : tensor<4xf32>
  %2 = relay.nn.relu %1 : (tensor<4xf32>) -> tensor<4xf32> loc("Relu_1")
  %3 = byoc.compiler_end %2 for "npu" : tensor<4xf32>
  func.return %3 : tensor<4xf32>
}
"""
EACH_PASS_FIRST = """
import os
from byoc_mlir.tools import byoc_opt
from byoc_mlir.tools.passes import all_passes

failed = []
for name, load in all_passes().items():
    if (child := os.fork()) == 0:
        try:
            load()
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
assert not failed, failed
"""
"""Script that runs each pass first, since FileCheck tests import all passes before the first runs.
"""

PARTITION = "fold-constants,simplify,fold-batch-norm,simplify,partition-for{targets=dnnl}"


@pytest.fixture
def annotated(tmp_path: Path) -> str:
    path = tmp_path / "annotated.mlir"
    path.write_text(ANNOTATED)
    return str(path)


def test_the_command_in_a_process_of_its_own(annotated: str) -> None:
    command = [sys.executable, "-m", "byoc_mlir.tools.byoc_opt", annotated, "-p", "simplify"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "byoc.compiler_begin" in done.stdout


def test_every_pass_can_be_the_first_that_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", EACH_PASS_FIRST], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_onnx_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([cli_models.written(tmp_path), "-p", PARTITION]) == 0
    printed = capsys.readouterr().out
    assert "func.func private @dnnl_main_0" in printed
    assert 'byoc.composite "dnnl.conv2d_bias_relu" from "nn.conv2d_nn.bias_add_nn.relu_"' in printed
    assert "relay.sin" in printed
    assert "relay.nn.batch_norm" not in printed


def test_onnx_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    stream = io.TextIOWrapper(io.BytesIO(cli_models.model().SerializeToString()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["--frontend", "onnx"]) == 0
    assert "relay.nn.conv2d" in capsys.readouterr().out


def test_explain_has_a_line_for_every_onnx_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([cli_models.written(tmp_path), "-p", PARTITION, "--explain"]) == 0
    _, _, *rows, summary = capsys.readouterr().out.splitlines()
    cells = {row.split()[1]: row.split(maxsplit=3) for row in rows}
    assert list(cells) == cli_models.NODES
    assert cells["Constant"][2] == "folded"
    assert cells["Identity"][2:] == ["removed", "its output is its input"]
    assert cells["BatchNormalization"][2:] == ["dnnl", "dnnl_main_0  dnnl.conv2d_bias_relu"]
    assert cells["Sin"][2:] == ["host", "dnnl: no rule for sin"]
    assert summary == "8 nodes: 3 dnnl, 2 folded, 2 host, 1 removed"


def test_explain_has_a_line_for_every_op(annotated: str, capsys: pytest.CaptureFixture[str]):
    assert main([annotated, "-p", "partition-graph", "--explain"]) == 0
    _, _, *rows, summary = capsys.readouterr().out.splitlines()
    assert [row.split(maxsplit=3) for row in rows] == [
        ["-", "exp", "host", "no backend was asked"],
        ["Relu_1", "nn.relu", "npu", "npu_main_0"],
    ]
    assert summary == "2 nodes: 1 host, 1 npu"


def test_output_with_weights_can_be_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    first, second = tmp_path / "first.mlir", tmp_path / "second.mlir"
    assert main([cli_models.written(tmp_path), "-o", str(first)]) == 0
    assert first.with_suffix(".safetensors").is_file()
    assert main([str(first), "-o", str(second)]) == 0
    assert first.read_text() == second.read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere.mlir"], "'nowhere.mlir' cannot be read: No such file"),
        (["model.txt"], "'model.txt' does not end in one of .mlir, .onnx; or give --frontend"),
        (["FILE", "-p", "no-such-pass"], "there is no pass 'no-such-pass'; --help lists all"),
        (["FILE", "-p", "simplfy,partition-grph"], "no pass 'simplfy'; did you mean 'simplify'?, "),
        (["FILE", "-p", "prune-regions{min-work=1,}"], "Unknown argument value, wrap argument in"),
        (["FILE", "-p", "prune-regions{min-work"], "Error parsing pass pipeline specification"),
        (["FILE", "-p", "prune-regions{min-work=much}"], "given ('much',), expected"),
        (["FILE", "-p", "partition-for"], 'partition-for requires argument "targets"'),
        (["FILE", "-p", "partition-for{targets=nobody}"], "no backend is named 'nobody'"),
        (["FILE", "--backend", "nowhere.py"], "no backend file 'nowhere.py'"),
        (["FILE", "-p", "inline-partitions{functions=f}"], "region is called @f; there are none"),
    ],
)
def test_what_users_get_wrong(
    annotated: str, args: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert main([annotated if arg == "FILE" else arg for arg in args]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "error: " in printed.err
    assert message in printed.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("relay.no_such_op", "Operation relay.no_such_op is not registered"),
        (ANNOTATED.replace("byoc.compiler_end %2", "byoc.compiler_end %x"), "no region computes"),
        (ANNOTATED.replace("-> tensor<4xf32> loc", "-> tensor<5xf32> loc"), "tensor<5xf32>"),
        (ANNOTATED.replace("relay.nn.relu %1", "relay.nn.relu %3"), "which comes later"),
    ],
    ids=["unknown op", "inconsistent marks", "ill-typed", "wrong order"],
)
def test_ir_that_is_wrong(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "wrong.mlir"
    path.write_text(text)
    assert main([str(path), "-p", "merge-compiler-regions"]) == 1
    assert message in capsys.readouterr().err


def test_a_file_that_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "wrong.onnx"
    path.write_bytes(b"junk")
    assert main([str(path)]) == 1
    assert "not an ONNX model (4 bytes)" in capsys.readouterr().err


def test_bad_usage_exits_with_two(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as raised:
        main(["--no-such-option"])
    assert raised.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_shapes_are_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cli_models.written(tmp_path, batch="n")
    assert main([path]) == 1
    assert "n" in capsys.readouterr().err
    assert main([path, "--shape", "x=5,3,8,8"]) == 0
    assert "tensor<5x3x8x8xf32>" in capsys.readouterr().out


def test_shapes_of_mlir_are_in_the_text(annotated: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([annotated, "--shape", "x=4"]) == 1
    assert "is in MLIR, which says its shapes" in capsys.readouterr().err


def test_bundled_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["squeezenet"]) == 0
    assert "relay.nn.conv2d" in capsys.readouterr().out
    assert main(["squezenet"]) == 1
    assert "did you mean 'squeezenet'?" in capsys.readouterr().err
