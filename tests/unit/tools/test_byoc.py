"""Command `byoc`, in process: its output and its exit codes."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import cli_models
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.tools.byoc import main
from byoc_mlir.tools.commands.common import find_model
from byoc_mlir.tools.commands.run import difference_table, differences_of

TARGETS = ["--targets", "dnnl", "--threads", "1"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return cli_models.written(tmp_path)


@pytest.fixture
def byoc(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.setenv("COLUMNS", "250")

    def call(*args: str) -> tuple[int, str, str]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = main(args)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


def test_report_has_one_row_for_every_node(byoc, path: str):
    code, out, _ = byoc("report", path, "--json", *TARGETS)
    document = json.loads(out)
    rows = {row["op_type"]: row for row in document["nodes"]}
    assert code == 0
    assert [row["op_type"] for row in document["nodes"]] == cli_models.NODES
    assert rows["Conv"]["node"] == "/[conv]"
    assert (rows["Conv"]["inputs"], rows["Conv"]["outputs"]) == (["same", "w"], ["conv"])
    assert [rows[kind]["placement"] for kind in ("Constant", "Add")] == ["folded", "folded"]
    assert rows["Identity"]["placement"] == "removed"
    assert rows["Identity"]["reason"] == "its output is its input"
    for kind in ("Conv", "BatchNormalization", "Relu"):  # fused: one composite stands for three
        assert rows[kind]["placement"] == "dnnl"
        assert rows[kind]["composite"] == "dnnl.conv2d_bias_relu"
        assert rows[kind]["region"] == "dnnl_main_0"
    assert rows["Sin"]["placement"] == "host"
    assert rows["Sin"]["reason"] == "dnnl: no rule for sin"
    assert document["composites"] == {"dnnl.conv2d_bias_relu": 1}


def test_report_as_a_table(byoc, path: str):
    code, out, _ = byoc("report", path, "--all", *TARGETS)
    assert code == 0
    head, _, *rows, summary = out.splitlines()
    assert head.split()[:5] == ["node", "op", "placement", "region", "composite"]
    assert len(rows) == len(cli_models.NODES)
    [sin] = [row for row in rows if "Sin" in row]
    assert sin.split(maxsplit=3) == ["/[sin]", "Sin", "host", "dnnl: no rule for sin"]
    assert summary == "8 nodes: 3 dnnl, 2 folded, 2 host, 1 removed"


def test_heavy_nodes_on_the_host_are_named(byoc, tmp_path: Path):
    text = "net (double[2, 2] x) => (double[2, 2] y) { y = MatMul (x, x) }"
    path = tmp_path / "double.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>{text}'), path)
    code, out, err = byoc("report", str(path), *TARGETS)
    assert code == 0
    assert "1 node: 1 host" in out.splitlines()
    assert err.startswith("warning: 1 heavy node(s) stay on the host:\n  MatMul_0 (MatMul): dnnl:")


def test_report_of_a_model_with_symbolic_shapes(byoc, tmp_path: Path):
    path = cli_models.written(tmp_path, "batch")
    code, out, _ = byoc("report", path, "--json", "--shape", "x=2,3,8,8", *TARGETS)
    assert code == 0
    assert len(json.loads(out)["nodes"]) == 8
    code, _, err = byoc("report", path, "--json", *TARGETS)
    assert code == 1
    assert "give the shapes of its inputs, --shape NAME=1,2,3" in err


def test_report_says_what_was_pruned(byoc, path: str):
    code, out, _ = byoc("report", path, "--json", "--prune", "estimated", *TARGETS)
    rows = {row["op_type"]: row for row in json.loads(out)["nodes"]}
    assert code == 0
    assert rows["Conv"]["placement"] == "host"
    assert rows["Conv"]["reason"].startswith("demoted: the region does about")


def test_run(byoc, path: str, tmp_path: Path):
    x = np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "in.npz", x=x)
    args = ["--inputs", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out.npz")]
    code, out, _ = byoc("run", path, *args, *TARGETS)
    assert code == 0
    assert "dnnl.conv2d_bias_relu" in out
    assert "float32[1, 4, 6, 6]" in out
    found = dict(np.load(tmp_path / "out.npz"))
    wanted = [*map(np.asarray, ReferenceEvaluator(cli_models.model()).run(None, {"x": x}))]
    np.testing.assert_allclose(found["y"], wanted[0], rtol=1e-4)
    np.testing.assert_allclose(found["z"], wanted[1], rtol=1e-4, atol=1e-5)


def test_run_compares_precisions(byoc, path: str):
    code, out, _ = byoc("run", path, "--precision", "bf16", "--compare", "f32", *TARGETS)
    assert code == 0
    _, _, table = out.partition("difference from f32")
    assert [word for word in ("output", "largest", "mean", "largest element") if word in table]
    assert "y" in table.split()


def test_differences_count_what_is_not_finite_as_equal_where_it_is() -> None:
    found = {"y": np.array([1.0, np.nan, np.inf, 2.0]), "name": np.array(["a"])}
    wanted = {"y": np.array([1.0, np.nan, np.inf, 4.0]), "name": np.array(["b"])}
    table = difference_table(differences_of(found, wanted), "f32")
    cells = [list(column.cells) for column in table.columns]
    assert cells == [["y"], ["2"], ["0.5"], ["4"]]


def test_a_symbolic_dimension_gets_a_number(byoc, tmp_path: Path):
    path = cli_models.written(tmp_path, "batch")
    code, out, _ = byoc("run", path, "--size", "batch=2", *TARGETS)
    assert code == 0
    assert "float32[2, 4, 6, 6]" in out


def test_run_invents_inputs_for_given_shapes(byoc, tmp_path: Path):
    path = cli_models.written(tmp_path, "batch")
    code, out, _ = byoc("run", path, "--shape", "x=2,3,8,8", *TARGETS)
    assert code == 0
    assert "float32[2, 4, 6, 6]" in out
    code, _, err = byoc("run", path, *TARGETS)
    assert code == 1
    assert "give the shape of x: float32[batch, 3, 8, 8] with --shape x=1,2,3" in err


def test_compile(byoc, path: str):
    code, out, _ = byoc("compile", path, *TARGETS)
    assert code == 0
    for stage in ("import", "partition", "generate", "lower", "optimise", "total"):
        assert stage in out
    assert "regions 1" in out
    code, out, _ = byoc("compile", path, "--time-passes", *TARGETS)
    assert code == 0
    for name in ("(import)", "fold-constants", "partition-for", "(generate)", "llvm-optimise"):
        assert name in out


def test_bench(byoc, path: str):
    code, out, _ = byoc("bench", path, "--runs", "3", "--warmup", "1", *TARGETS)
    assert code == 0
    assert "3 runs" in out
    median = out.splitlines()[-2].split()[3]
    assert 0 < float(median) < 1000


def test_doctor(byoc):
    code, out, _ = byoc("doctor")
    assert code == 0
    for line in ("byoc_mlir", "processor", "instructions", "LLVM takes it for", "backend dnnl"):
        assert line in out


def test_fallback_forbid_lists_all_nodes(byoc, path: str):
    code, _, err = byoc("report", path, "--fallback", "forbid", *TARGETS)
    assert code == 1
    assert err.splitlines() == [
        "error: FallbackForbiddenError: 2 node(s) are not taken by dnnl:",
        "  /[sin] (Sin): dnnl: no rule for sin",
        "  /[mod] (Mod): dnnl: no rule for mod",
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["report", "nowhere.onnx"], "there is no file 'nowhere.onnx', and no network"),
        (["run", "MODEL", "--targets", "nobody"], "no backend is named 'nobody'; known are"),
        (["run", "MODEL", "--backend", "nowhere.py"], "no backend file 'nowhere.py'"),
        (["run", "MODEL", "--inputs", "MODEL"], "is not an .npz file of arrays"),
        (["run", "MODEL", "--backend", "no..module"], "backend 'no..module' cannot be loaded"),
        (["run", "MODEL", "--backend", ""], "backend '' cannot be loaded"),
        (["run", "MODEL", "--targets", "dnnl{"], "dnnl{"),
        (["run", "MODEL", "--targets", "dnnl{fly=on}"], "fly"),
        (["run", "MODEL", "--shape", "z=1,2"], "the model has no input 'z'"),
        (["run", "MODEL", "--inputs", "nowhere.npz"], "'nowhere.npz' cannot be read"),
        (["run", "nowhere.so"], "'nowhere.so' cannot be read"),
        (["report", "/"], "there is no file '/'"),
        (["compile", "MODEL", "--limit", "nodes=3"], "nodes of the model: 8, the limit is 3"),
        (["compile", "MODEL", "--limit", "threads=2", "--threads", "3"], "the limit is 2"),
        (["compile", "MODEL", "-o", "model.exe"], "must end in .so"),
        (["compile", "MODEL", "-o", "/dev/null/m.so"], "the operating system refused"),
        (["new-backend", "Not-A-Name"], "a Python identifier in lower case"),
        (["cache", "/dev/null"], "cannot be made"),
    ],
)
def test_what_users_get_wrong(byoc, path: str, args: list[str], message: str):
    code, _, err = byoc(*[path if arg == "MODEL" else arg for arg in args])
    assert code == 1
    assert err.startswith("error: ")
    assert message in err


def test_a_file_that_is_no_model(byoc, tmp_path: Path):
    (tmp_path / "model.onnx").write_bytes(b"\x08\x07junk")
    code, _, err = byoc("report", str(tmp_path / "model.onnx"))
    assert code == 1
    assert "InvalidModelError" in err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "required: COMMAND"),
        (["fly"], "invalid choice: 'fly'"),
        (["report", "--fallback", "maybe"], "invalid choice: 'maybe'"),
        (["report", "--prune", "all"], "invalid choice: 'all'"),
        (["report", "one.onnx", "two.onnx"], "unrecognized arguments: two.onnx"),
        (["report", "--fly"], "unrecognized arguments: --fly"),
        (["run", "--threads", "0"], "'0' is no whole number of 1 and more"),
        (["run", "--threads", "many"], "'many' is no whole number of 1 and more"),
        (["run", "--seed", "-1"], "'-1' is no whole number of 0 and more"),
        (["run", "--shape", "x=1,two"], "'x=1,two' is not of the form NAME=SIZE,SIZE,…"),
        (["run", "--shape", "x=1,-2"], "'x=1,-2' is not of the form NAME=SIZE,SIZE,…"),
        (["run", "--shape", "1,2"], "'1,2' is not of the form NAME=SIZE,SIZE,…"),
        (["run", "--limit", "fly=1"], "there is no limit 'fly'; names are tensor_bytes,"),
        (["run", "--limit", "nodes"], "'nodes': invalid literal"),
        (["run", "--limit", "nodes=-1"], "nodes is -1, accepted is a whole number"),
        (["run", "--limit", "seconds=nan"], "seconds is nan, accepted is a number"),
        (["bench", "--runs", "0"], "'0' is no whole number of 1 and more"),
        (["new-backend"], "required: name"),
    ],
)
def test_bad_usage_exits_with_two(
    args: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(args)
    assert raised.value.code == 2
    printed = capsys.readouterr().err
    assert "usage: byoc" in printed
    assert message in printed


def test_version(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as raised:
        main(["--version"])
    assert raised.value.code == 0
    assert capsys.readouterr().out.startswith("byoc_mlir ")


def test_networks_of_the_package_have_names() -> None:
    path = find_model("mlp3")
    assert path.name == "mlp3.onnx"
    assert find_model("mlp3") == path
    with pytest.raises(InvalidModelError, match="no network of that name"):
        find_model("mlp33")
