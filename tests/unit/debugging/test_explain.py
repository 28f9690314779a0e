"""`byoc explain`: the path of a node through the compiler, and the matches of a pattern."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

from byoc_mlir.backends import Backend, CSource, register_backend
from byoc_mlir.patterns import CompositePattern, is_constant, is_op, wildcard
from byoc_mlir.tools.byoc import main

_MODEL = """<ir_version: 10, opset_import: ["" : 18]>
net (float[N, 4] x) => (float[N, 4] y, float[4] k) <float[4] c = {1.0, 2.0, 3.0, 4.0}> {
  [table] t = Constant <value = float[4] {0.5, 0.25, 0.5, 0.125}> ()
  [known] k = Add (t, c)
  [same] i = Identity (x)
  [sine] s = Sin (i)
  [product] p = Mul (s, c)
  [sum] a = Add (p, i)
  [scaled] l = LeakyRelu <alpha = 0.25> (a)
  [shares] y = Softmax <axis = 0> (l)
}"""


@register_backend
class Explained(Backend):
    """Backend that refuses all ops except matmuls after sines."""

    name = "explained"

    def op_rules(self):
        return {"sin": lambda op: "sines are slow"}

    def patterns(self):
        sine = is_op("sin")(wildcard())
        return [
            CompositePattern("explained.wave", is_op("multiply")(sine, is_constant())),
            CompositePattern(
                "explained.short", is_op("multiply")(sine, wildcard()), lambda match: "too short"
            ),
            CompositePattern(
                "explained.activated",
                is_op("nn.leaky_relu")(is_op("add")(wildcard(), is_constant())),
            ),
            CompositePattern(
                "explained.rows", is_op("nn.softmax")(wildcard()).has_attr({"axis": 1})
            ),
        ]

    def codegen(self, region, context):
        symbol = region.sym_name.data
        body = "for (int i = 0; i < 12; ++i) out[i] = sinf(x[i]) * c[i % 4]; return 0;"
        arguments = "const float *c, const float *x, float *out"
        return CSource(f"#include <math.h>\nint {symbol}({arguments}) {{ {body} }}\n")


@pytest.fixture
def path(tmp_path: Path) -> str:
    onnx.save(parser.parse_model(_MODEL.replace("N", "3")), tmp_path / "model.onnx")
    return str(tmp_path / "model.onnx")


def _explained(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    code = main(["explain", *args, "--targets", "explained", "--threads", "1"])
    printed = capsys.readouterr()
    assert code == 0, printed.err
    assert all(len(line) <= 80 for line in printed.out.splitlines())
    return printed.out


def test_a_node_in_a_composite(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = _explained(capsys, path, "--node", "sine")
    assert text.startswith("sine (Sin): explained, in region explained_main_0, as explained.wave")
    assert "imported as:\n  sin -> tensor<3x4xf32>" in text
    assert "explained, sin refused sine: sines are slow" in text
    assert "explained.wave accepted sine, product" in text
    assert "explained.short refused sine, product: too short" in text
    document = json.loads(_wide(capsys, path, "--node", "sine"))
    assert document["row"]["composite"] == "explained.wave"
    assert {one["outcome"] for one in document["patterns"]} == {"accepted", "refused"}


def _wide(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["explain", *args, "--targets", "explained", "--json"]) == 0
    return capsys.readouterr().out


def test_a_node_on_the_host(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = _explained(capsys, path, "--node", "scaled")
    assert text.startswith("scaled (LeakyRelu): host, in f32; explained: no rule for nn.leaky_relu")
    assert "imported as:\n  nn.leaky_relu {alpha = 0.25} -> tensor<3x4xf32>" in text
    assert 'convert-relay-to-linalg: linalg.generic {doc = "leaky_relu"}' in text
    assert "computed by:\n  " in text


def test_nodes_without_code(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = "known (Add): folded; its outputs are the same for all inputs\n"
    assert _explained(capsys, path, "--node", "known") == said
    said = "same (Identity): removed; its output is its input\n"
    assert _explained(capsys, path, "--node", "same") == said


def test_a_pattern_that_nearly_matches(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = _explained(capsys, path, "--pattern", "explained.activated")
    assert text.startswith("explained.activated: 0 accepted, 0 refused, 1 missed\n")
    assert "it is:\n  nn.leaky_relu(add(*, a constant))\n" in text
    assert "missed scaled: expected a constant, found" in text


def test_a_pattern_with_another_attribute(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = _explained(capsys, path, "--pattern", "explained.rows")
    assert "expected axis = 1 on nn.softmax (shares), found 0" in " ".join(text.split())


def test_a_pattern_that_is_refused(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = _explained(capsys, path, "--pattern", "explained.short")
    assert "refused by its check:\n  explained.short refused sine, product: too short" in text


def test_a_pattern_that_comes_too_late(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = [path, "--pattern", "explained.wave", "--disable", "explained.wave"]
    assert main(["explain", *args, "--targets", "explained"]) == 1
    assert "is disabled" in capsys.readouterr().err


def test_symbolic_dimensions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "symbolic.onnx")
    onnx.save(parser.parse_model(_MODEL), path)
    assert main(["explain", path, "--node", "sine"]) == 1
    assert "give the shape of x: float32[N, 4] with --shape x=1,2,3" in capsys.readouterr().err
    text = _explained(capsys, path, "--node", "sine", "--shape", "x=3,4")
    assert "tensor<3x4xf32>" in text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--node", "sinus"], "the model has no node 'sinus'; did you mean 'sine'?"),
        (["--node", "?"], "the model has no node '?'; the first ones are table, known"),
        (["--pattern", "explained.wawe"], "no pattern 'explained.wawe'; did you mean"),
        (["--pattern", "explain.wave"], "did you mean 'explained'?"),
        (["--node", "sine", "--shape", "z=1"], "the model has no input 'z'"),
    ],
)
def test_refused(path: str, capsys: pytest.CaptureFixture[str], args: list[str], said: str) -> None:
    assert main(["explain", path, *args]) == 1
    assert said in capsys.readouterr().err
