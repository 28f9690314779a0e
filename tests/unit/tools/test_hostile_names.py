"""Names in a model reach terminals, pages, traces and headers without control characters."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.errors import ByocError, InvalidModelError, LimitExceededError
from byoc_mlir.names import printable, printable_lines
from byoc_mlir.tools.byoc import main

HOSTILE = (
    "\x1b[2J\x1b]8;;http://evil\x1b\\[/][red]:x:</script>*/\u202e\u2066\u200b\u2028\x9b\x07\x7f"
    "\r\nerror: forged\t\x00'\"../../@DATA@%n"
)


def _saved(folder: Path, op_type: str = "Relu") -> str:
    """Writes a model all of whose texts are hostile, behind a hostile file name."""
    w = numpy_helper.from_array(np.ones((4, 4), np.float32), f"w{HOSTILE}")
    nodes = [
        helper.make_node("MatMul", [f"x{HOSTILE}", w.name], [f"h{HOSTILE}"], f"mm{HOSTILE}"),
        helper.make_node(op_type, [f"h{HOSTILE}"], [f"y{HOSTILE}"], f"node{HOSTILE}"),
    ]
    for node in nodes:
        node.doc_string = HOSTILE
    x, y = (
        helper.make_tensor_value_info(f"{name}{HOSTILE}", TensorProto.FLOAT, [2, 4])
        for name in "xy"
    )
    graph = helper.make_graph(nodes, f"graph{HOSTILE}", [x], [y], [w], doc_string=HOSTILE)
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 20)],
        ir_version=9,
        producer_name=HOSTILE,
        doc_string=HOSTILE,
    )
    helper.set_model_props(model, {f"k{HOSTILE}": HOSTILE})
    path = folder / f"m{HOSTILE.translate({0: None, ord('/'): None})}.onnx"
    path.write_bytes(model.SerializeToString())
    return str(path)


def _assert_neutral(text: str) -> None:
    bad = {one for one in text if not one.isprintable() and one != "\n"}
    assert not bad, sorted(bad)
    assert not any(line.startswith("error: forged") for line in text.splitlines())


COMMANDS = [
    ["run"],
    ["run", "--compare", "bf16"],
    ["run", "--json"],
    ["report"],
    ["report", "--all"],
    ["report", "--json"],
    ["profile", "--runs", "1"],
    ["profile", "--runs", "1", "--trace", "trace.json", "--json"],
    ["verify", "--nodes", "--against", "reference"],
    ["bisect", "--against", "reference"],
    ["explain", "--node", f"node{HOSTILE}"],
    ["explain", "--node", f"none{HOSTILE}"],
    ["explain", "--pattern", "dnnl.dense"],
    ["check", "--all"],
    ["signature"],
    ["signature", "--json"],
    ["bench", "--runs", "1", "--warmup", "0"],
    ["compile", "--dump-dir", "dump", "-o", "out.o"],
    ["tune", "--seconds", "0.1"],
    ["view", "--profile", "--runs", "1", "-o", "page.html"],
    ["run", "--shape", f"none{HOSTILE}=1"],
    ["run", "--limit", "constant_bytes=1"],
    ["run", "--fallback", "forbid", "--targets", "ccompiler"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: printable(" ".join(command))[:40])
def test_no_command_writes_what_a_name_commands(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, *options = command
    monkeypatch.chdir(tmp_path)
    models = tmp_path / "models"
    models.mkdir()
    path = _saved(models)
    code = main([name, path, *options])
    printed = capsys.readouterr()
    _assert_neutral(printed.out.replace("\x7f", "") if "--json" in options else printed.out)
    _assert_neutral(printed.err)
    assert "InternalError" not in printed.err
    assert code in (0, 1)
    for file in tmp_path.rglob("*"):
        if file.is_file() and file.suffix in (".json", ".html", ".h", ".mlir", ".txt", ".ll"):
            assert file.resolve().is_relative_to(tmp_path)
            if file.suffix != ".html":  # the layout library in a page has tabs
                _assert_neutral(file.read_text().replace("\t", ""))


@pytest.mark.parametrize("command", ["run", "check", "compile", "report", "view"])
def test_no_error_or_warning_writes_what_a_name_commands(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([command, _saved(tmp_path, f"Nope{HOSTILE}")])
    printed = capsys.readouterr()
    assert code == 1
    _assert_neutral(printed.out + printed.err)


def test_a_page_holds_names_as_text(tmp_path: Path) -> None:
    with byoc_mlir.compile(_saved(tmp_path), targets=()) as executable:
        page = executable.report().to_html(f"title{HOSTILE}")
    data = page.split('<script id="data" type="application/json">')[1].split("</script>")[0]
    names = [node["name"] for node in json.loads(data)["nodes"]]
    assert names == [f"mm{HOSTILE}", f"node{HOSTILE}"]
    assert page.count("</script>") == page.count("<script")
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_outputs_keep_their_names(tmp_path: Path) -> None:
    with byoc_mlir.compile(_saved(tmp_path), targets=()) as executable:
        outputs = executable.run({f"x{HOSTILE}": np.ones((2, 4), np.float32)})
    assert list(outputs) == [f"y{HOSTILE}"]


@pytest.mark.parametrize(
    "error",
    [
        ByocError(f"'{HOSTILE}'"),
        InvalidModelError(HOSTILE),
        LimitExceededError("nodes", HOSTILE, 2, 1),
    ],
)
def test_messages_of_errors_are_neutral(error: ByocError) -> None:
    error.locate("run", HOSTILE)
    _assert_neutral(str(error))


def test_a_warning_names_nodes_without_control_characters(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        byoc_mlir.compile(_saved(tmp_path), targets=("ccompiler",), fallback="warn").close()
    for warning in caught:
        _assert_neutral(str(warning.message))


def test_later_lines_are_indented_together() -> None:
    assert printable_lines("a\nb\n  c") == "a\n  b\n    c"
    assert printable_lines("a\n  b\n    c") == "a\n  b\n    c"
    assert printable("añ…\u00a0\u202e") == "añ…\\xa0\\u202e"
