"""What the report, the warning and the error say about nodes that stay on the host."""

from __future__ import annotations

import warnings

import pytest
from onnx import parser
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.backends import Backend, CSource, register_backend
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import FallbackForbiddenError


@register_backend
class Reporting(Backend):
    """Takes `nn.relu` only."""

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
def test_heavy_nodes_on_the_host_warn(model: object):
    with pytest.warns(UserWarning, match="(?s)1 heavy node.*matrices are too large") as caught:
        byoc_mlir.compile(model, targets=("reporting",)).close()
    assert 'fallback="allow" silences this' in str(caught[0].message)
    assert caught[0].filename == __file__


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
