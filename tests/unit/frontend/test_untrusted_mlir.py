"""`.mlir` files from untrusted sources compute on their own tensors; all else needs
`trusted=True`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import (
    ByocError,
    CompilationError,
    InvalidModelError,
    UnsafeModelError,
    UnsupportedTypeError,
)
from byoc_mlir.tools.byoc import main

U = "(tensor<4xf32>) -> tensor<4xf32>"
RELU = f"%r = relay.nn.relu %x : {U}"
GENERIC = """%e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0 + 9)>, affine_map<(d0) -> (d0)>],
    iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>"""
HARMLESS = GENERIC.replace("d0 + 9", "d0")


def written(folder: Path, body: str = RELU, beside: str = "", attributes: str = "") -> Path:
    path = folder / "model.mlir"
    path.write_text(
        f"{beside}\nfunc.func @main(%x: tensor<4xf32>) -> tensor<4xf32>{attributes} {{\n"
        f"  {body}\n  func.return %r : tensor<4xf32>\n}}\n"
    )
    return path


def branch(name: str, body: str = "func.return %x : tensor<4xf32>") -> str:
    return f"func.func private @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{body}\n}}\n"


def condition(symbols: str) -> str:
    return f"""%c = relay.constant dense<true> : tensor<i1>
  %r = relay.if %c, %x {{{symbols}}} : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>"""


IF = condition("then_branch = @f, else_branch = @g")
REFUSED = {
    "llvm function": {"beside": "llvm.func @system(!llvm.ptr) -> i32"},
    "declaration": {"beside": "func.func private @system(tensor<4xf32>) -> tensor<4xf32>"},
    "call": {"body": "%r = func.call @f(%x) : " + U, "beside": branch("f")},
    "backend's function": {"attributes": ' attributes {byoc.compiler = "ccompiler"}'},
    "function's attribute": {"attributes": " attributes {byoc.kernel = true}"},
    "annotation": {
        "body": f"""%a = byoc.compiler_begin %x for "ccompiler" : tensor<4xf32>
  %b = relay.nn.relu %a : {U}
  %r = byoc.compiler_end %b for "ccompiler" : tensor<4xf32>"""
    },
    "composite": {
        "body": '%r = byoc.composite "dnnl.x" from "x" (%a = %x : tensor<4xf32>) ->'
        f" tensor<4xf32> {{\n%0 = relay.nn.relu %a : {U}\nbyoc.yield %0 : tensor<4xf32>\n}}"
    },
    "op's attribute": {"body": RELU.replace(" :", ' {library = "/tmp/x.so"} :')},
    "symbol as a property": {
        "body": '%r = "relay.cast"(%x) <{dtype = @system}> : ' + U,
    },
    "reads beyond": {"body": GENERIC},
    "reads nothing's memory": {"body": "%r = tensor.empty() : tensor<4xf32>"},
    "computed place": {
        "body": """%i = arith.constant 999999 : index
  %v = tensor.extract %x[%i] : tensor<4xf32>
  %r = tensor.splat %v : tensor<4xf32>"""
    },
    "slice beyond": {
        "body": "%r = tensor.insert_slice %x into %x[2][4][1] : tensor<4xf32> into tensor<4xf32>"
    },
    "memory": {
        "body": """%m = memref.alloca() : memref<4xf32>
  %r = relay.nn.relu %x : """
        + U
    },
    "ONNX node": {
        "body": '%r = relay.onnx_node %x {op_type = "Relu", opset = 17, node = "AAAA"} : ' + U
    },
    "trees": {
        "body": """%r = "relay.ml.tree_ensemble"(%x, %x, %x, %x, %x, %x, %x, %x, %x)
    <{targets = 1 : i64, aggregate = "sum"}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
    tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    -> tensor<4xf32>"""
    },
    "symbol of sizes": {"beside": "relay.symbol @n {min = 1, hint = 2}"},
    "nested module": {"beside": "builtin.module { }"},
    "module's attribute": {"beside": "builtin.module attributes {byoc.arena_bytes = 1 : i64} {"},
    "name that is C": {
        "beside": branch("f").replace("@f", '@"f(){}"') + branch("g"),
        "body": IF.replace("@f", '@"f(){}"'),
    },
    "recursion": {
        "beside": branch("f", IF.replace("@f", "@main") + "\nfunc.return %r : tensor<4xf32>")
    },
    "several callers": {
        "beside": branch("f") + branch("g"),
        "body": IF.replace("%r", "%s").replace("%c", "%d") + "\n" + IF.replace(", %x", ", %s"),
    },
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_a_stranger_may_not_write_is_refused(form: str, tmp_path: Path) -> None:
    path = written(tmp_path, **REFUSED[form])
    if form == "module's attribute":
        path.write_text(path.read_text() + "}")
    with pytest.raises(ByocError) as caught:
        byoc_mlir.compile(path, targets=(), cache=False)
    is_checked = "does not verify" in str(caught.value)
    assert is_checked or isinstance(caught.value, UnsafeModelError), caught.value
    assert is_checked or "trusted=True" in str(caught.value)


def test_a_function_is_a_branch_of_one_op(tmp_path: Path) -> None:
    path = written(tmp_path, IF, branch("f") + branch("g"))
    x = np.arange(4, dtype=np.float32)
    with byoc_mlir.compile(path, targets=()) as executable:
        np.testing.assert_array_equal(executable.run([x])["result0"], x)


def test_names_of_nodes_and_reasons_are_no_danger(tmp_path: Path) -> None:
    notes = '{byoc.reason = "said", onnx_name = ["y"]}'
    path = written(tmp_path, RELU.replace(" :", f" {notes} :") + ' loc("Relu_0")')
    byoc_mlir.compile(path, targets=()).close()


@pytest.mark.parametrize("how", ["trusted", "module"])
def test_who_says_so_compiles_ops_of_all_levels(how: str, tmp_path: Path) -> None:
    path = written(tmp_path, HARMLESS)
    x = np.arange(4, dtype=np.float32)
    module = Parser(make_context(), path.read_text()).parse_module()
    model, trusted = (path, True) if how == "trusted" else (module, False)
    with byoc_mlir.compile(model, targets=(), trusted=trusted) as executable:
        np.testing.assert_array_equal(executable.run([x])["result0"], x)


def test_a_global_that_nothing_defines_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, RELU, "llvm.mlir.global external @environ() : !llvm.ptr")
    with pytest.raises(CompilationError, match="global 'environ'"):
        byoc_mlir.compile(path, targets=(), trusted=True, cache=False)


def test_the_command_line_needs_the_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(written(tmp_path, HARMLESS))
    assert main(["run", path, "--targets", ""]) == 1
    assert "--trusted" in capsys.readouterr().err
    assert main(["run", path, "--targets", "", "--trusted"]) == 0


def test_an_operand_that_the_ops_own_region_defines_is_refused(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        f"""%r = byoc.composite "dnnl.x" from "x" (%a = %inner : tensor<4xf32>) -> tensor<4xf32> {{
    %inner = relay.nn.relu %a : {U}
    byoc.yield %inner : tensor<4xf32>
  }}""",
    )
    with pytest.raises(InvalidModelError, match=r"byoc\.composite reads a value of its own region"):
        byoc_mlir.compile(path, targets=(), trusted=True)


def test_elements_that_tensors_cannot_have_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, f"%e = tensor.empty() : tensor<4xindex>\n  {RELU}")
    with pytest.raises(UnsupportedTypeError, match="elements of index are not supported"):
        byoc_mlir.compile(path, ())


def test_a_file_needs_its_weights(tmp_path: Path) -> None:
    body = """%w = relay.constant #relay.weight<"w", "system"> : tensor<4xf32>
  %r = relay.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>"""
    with pytest.raises(byoc_mlir.errors.MissingWeightsError):
        byoc_mlir.compile(written(tmp_path, body), targets=())
