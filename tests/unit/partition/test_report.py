"""Texts of the report, the warning and the error on nodes that stay on the host."""

from __future__ import annotations

import json
import warnings

import pytest
from onnx import parser
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.backends import Backend, CSource, register_backend
from byoc_mlir.compiler.partition.report import build_report, check_fallback
from byoc_mlir.compiler.source import ModelSource
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import FallbackForbiddenError
from byoc_mlir.frontend import import_model
from byoc_mlir.runtime.report import Report, ReportRow
from byoc_mlir.transforms.fake_quantization_to_integer import FakeQuantizationToInteger


@register_backend
class Reporting(Backend):
    """Backend that accepts `nn.relu` only."""

    name = "reporting"

    def op_rules(self):
        return {"nn.relu": lambda op: None, "nn.matmul": lambda op: "matrices are too large"}

    def codegen(self, region, context):
        symbol = region.sym_name.data
        return CSource(
            f"int {symbol}(const float *x, float *y)"
            "{ for (int i = 0; i < 4; ++i) y[i] = x[i] > 0 ? x[i] : 0; return 0; }"
        )


def onnx_model(body: str):
    return parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>\n'
        f"net (float[2, 2] x, bool c) => (float[2, 2] y) {{ {body} }}"
    )


def ir(body: str) -> ModuleOp:
    text = f"func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {{ {body} }}"
    return Parser(make_context(), text).parse_module()


SQUARE = "y = MatMul (x, x)"
SQUARE_IR = """
  %0 = relay.nn.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  func.return %0 : tensor<2x2xf32>"""


@pytest.mark.parametrize("model", [onnx_model(SQUARE), ir(SQUARE_IR)], ids=["onnx", "ir"])
def test_heavy_nodes_on_the_host_warn(model: ModelSource):
    with pytest.warns(UserWarning, match="(?s)1 heavy node.*matrices are too large") as caught:
        byoc_mlir.compile(model, targets=("reporting",)).close()
    assert 'fallback="allow" silences this' in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("share", ["", "2 of its 3 ops: "])
def test_what_the_host_does_faster_is_no_reason_to_warn(share: str):
    row = ReportRow("n", "Einsum", "host", reason=f"{share}demoted: estimated 1 ms on the host")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_fallback(Report((row,)), "warn", ("reporting",))


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (SQUARE, {"targets": ("reporting",), "fallback": "allow"}),
        (SQUARE, {"targets": ()}),  # everything was asked to be there
        ("y = Sin (x)", {"targets": ("reporting",)}),  # not heavy
    ],
)
def test_other_nodes_do_not(body: str, options: dict[str, object]):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        byoc_mlir.compile(onnx_model(body), **options).close()  # pyright: ignore


def test_forbidden_fallback_lists_every_node():
    model = onnx_model("a = Sin (x)\n b = Relu (a)\n d = Identity (b)\n y = MatMul (d, d)")
    for number, node in enumerate(model.graph.node):
        node.name = f"n{number}"
    with pytest.raises(FallbackForbiddenError) as raised:
        byoc_mlir.compile(model, targets=("reporting",), fallback="forbid")
    assert str(raised.value).splitlines() == [
        "2 node(s) are not taken by reporting:",
        "  n0 (Sin): reporting: no rule for sin",
        "  n3 (MatMul): reporting: matrices are too large",
    ]


def test_a_node_that_became_several_ops_gives_the_reasons_of_all():
    branches = (
        "t = Constant <value = bool {1}> ()\n"
        "y = If (t) <then_branch = a () => (float[2, 2] p)"
        " { q = Relu (x) s = Sin (q) p = Cos (s) },"
        " else_branch = b () => (float[2, 2] r) { r = Cos (x) }>"
    )
    with byoc_mlir.compile(onnx_model(branches), targets=("reporting",)) as executable:
        _, row = executable.report()
    assert row.placement == "host"
    assert row.reason == "2 of its 3 ops: reporting: no rule for sin; reporting: no rule for cos"


@register_backend
class Refusing(Backend):
    """Backend that accepts nothing, for one reason."""

    name = "refusing"

    def op_rules(self):
        return {"sin": lambda op: "it never does", "cos": lambda op: "it never does"}

    def codegen(self, region, context):
        raise NotImplementedError  # its rules take nothing


def test_a_reason_that_several_ops_of_a_node_have_is_said_once():
    branches = (
        "t = Constant <value = bool {1}> ()\n"
        "y = If (t) <then_branch = a () => (float[2, 2] p) { s = Sin (x) p = Cos (s) },"
        " else_branch = b () => (float[2, 2] r) { r = Cos (x) }>"
    )
    targets = ("reporting", "refusing")
    with byoc_mlir.compile(onnx_model(branches), targets=targets, fallback="allow") as executable:
        _, row = executable.report()
    first, both, second = "no rule for sin", "refusing: it never does", "no rule for cos"
    assert row.reason == f"reporting: {first}; {both}; reporting: {second}"


def test_nodes_in_branches_have_rows():
    branches = (
        "y = If (c) <then_branch = a () => (float[2, 2] p) { q = Relu (x) p = Sin (q) },"
        " else_branch = b () => (float[2, 2] r) { r = Cos (x) }>"
    )
    with byoc_mlir.compile(onnx_model(branches), targets=("reporting",)) as executable:
        rows = [(row.node, row.op_type, row.placement, row.reason) for row in executable.report()]
    assert rows == [
        ("If_0", "If", "host", "the host runs control flow; what is inside has a place of its own"),
        ("If_0/then_branch/Relu_0", "Relu", "reporting", ""),
        ("If_0/then_branch/Sin_1", "Sin", "host", "reporting: no rule for sin"),
        ("If_0/else_branch/Cos_0", "Cos", "host", "reporting: no rule for cos"),
    ]


def test_ops_without_a_node_have_rows():
    body = """
      %0 = relay.nn.relu %x : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %1 = relay.sin %0 : (tensor<2x2xf32>) -> tensor<2x2xf32>
      func.return %1 : tensor<2x2xf32>"""
    with byoc_mlir.compile(ir(body), targets=("reporting",)) as executable:
        rows = [(row.node, row.op_type, row.placement) for row in executable.report()]
    assert rows == [("-", "nn.relu", "reporting"), ("-", "sin", "host")]


def test_nobody_was_asked():
    with byoc_mlir.compile(onnx_model("y = Sin (x)"), targets=()) as executable:
        [row] = executable.report()
    assert (row.placement, row.reason) == ("host", "no backend was asked")


def test_precisions() -> None:
    """Checks which ops compute with integers, which with floats though their operands are
    quantised, and why.
    """
    model = parser.parse_model(
        """
        <ir_version: 10, opset_import: ["" : 21]>
        g (uint8[2,3] x, int16[2,3] z) => (float[2,4] y, float[2,4] u)
        <float s = {0.5}, int8[3,4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
        {
            a = DequantizeLinear (x, s)
            b = DequantizeLinear (w, s)
            [integers] y = MatMul (a, b)
            c = DequantizeLinear (z, s)
            [floats] u = MatMul (c, b)
        }
        """
    )
    imported = import_model(model)
    FakeQuantizationToInteger().apply(make_context(), imported.module)
    report = build_report(imported, (), (), {})
    found = {row.node: row.precision for row in report if row.op_type == "MatMul"}
    reason = "its data is of int16, integer units take int8 and uint8"
    assert found == {"integers": "int8", "floats": f"f32: {reason}"}
    assert report.multiplications == {"int8": 24, "f32": 24}
    assert str(report).splitlines()[-1] == "multiplications: 50.0% int8, 50.0% f32"
    assert json.loads(report.to_json())["multiplications"] == {"int8": 24, "f32": 24}


def test_floats_alone_are_not_mentioned() -> None:
    with byoc_mlir.compile(onnx_model("y = Sin (x)"), targets=()) as executable:
        assert "precision" not in str(executable.report())
