"""Regions that do not pay go back to the host."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

import byoc_mlir
from byoc_mlir.backends import Backend, CSource, register_backend
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ByocError


@register_backend
class Loops(Backend):
    """Runs `tanh` far too slowly, and claims to have run a matrix product at once."""

    name = "pruned"
    generated: list[str] = []

    def op_rules(self):
        return {"tanh": lambda op: None, "nn.matmul": lambda op: None, "nn.dense": lambda op: None}

    def codegen(self, region, context):
        symbol = region.sym_name.data
        self.generated.append(symbol)
        if "matmul" in str(region) or "dense" in str(region):
            return CSource(f"int {symbol}(const float *x, const float *w, float *y){{return 0;}}")
        return CSource(
            "#include <math.h>\n"
            f"int {symbol}(const float *x, float *y)"
            "{ volatile float t = 0; for (int i = 0; i < 1000000; ++i) t += 1;"
            "  for (int i = 0; i < 8; ++i) y[i] = tanhf(x[i]); return 0; }",
            flags=("-O2", "-lm"),
        )


TANHS = """<ir_version: 8, opset_import: ["" : 17]>
g (float[8] x) => (float[8] y) { a = Tanh(x)  b = Exp(a)  y = Tanh(b) }"""
PRODUCT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[64, 512] x, float[512, 512] w) => (float[64, 512] y) { y = MatMul(x, w) }"""


def compiled(text: str, prune: str):
    model: onnx.ModelProto = parser.parse_model(text)
    return byoc_mlir.compile(model, targets=("pruned",), threads=1, fallback="allow", prune=prune)


def placements(executable: byoc_mlir.Executable) -> list[tuple[str, str]]:
    return [(row.op_type, row.placement) for row in executable.report()]


def test_nothing_is_pruned_unless_asked_for():
    with compiled(TANHS, "off") as executable:
        assert [where for _, where in placements(executable)] == ["pruned", "host", "pruned"]


def test_what_is_slower_than_the_host_goes_back():
    Loops.generated.clear()
    x = np.linspace(-1, 1, 8, dtype=np.float32)
    with compiled(TANHS, "measured") as executable:
        [y] = executable.run([x]).values()
        first, exp, last = executable.report()
    np.testing.assert_allclose(y, np.tanh(np.exp(np.tanh(x))), rtol=1e-5)
    assert (first.placement, exp.placement, last.placement) == ("host", "host", "host")
    for row in (first, last):
        assert row.reason.startswith("demoted: measured 0.0")
        assert row.reason.endswith(" ms on pruned")
    assert len(Loops.generated) == 1  # equal regions are measured once, and none is left


def test_what_is_faster_stays():
    with compiled(PRODUCT, "measured") as executable:
        assert placements(executable) == [("MatMul", "pruned")]


def test_little_work_goes_back():
    with compiled(TANHS, "estimated") as executable:
        first, _, _ = executable.report()
    assert first.placement == "host"
    assert first.reason == "demoted: the region does about 8 operations, less than 10000"
    with compiled(PRODUCT, "estimated") as executable:
        assert placements(executable) == [("MatMul", "pruned")]


def test_small_models_are_measured():
    with compiled(TANHS, "auto") as executable:
        assert [where for _, where in placements(executable)] == ["host"] * 3
    with compiled(PRODUCT, "auto") as executable:  # it does 34 million operations
        assert placements(executable) == [("MatMul", "pruned")]


def test_backends_are_believed_about_larger_models(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Loops, "faster_on_host", lambda self, region: "the host has a better way")
    with compiled(PRODUCT, "auto") as executable:
        [row] = executable.report()
    assert (row.placement, row.reason) == ("host", "demoted: the host has a better way")
    with compiled(PRODUCT, "off") as executable:
        assert placements(executable) == [("MatMul", "pruned")]


@pytest.mark.parametrize(
    ("targets", "fallback", "prune"),
    [(None, "warn", "auto"), (None, "forbid", "off"), ((), "warn", "off")],
)
def test_the_default(targets: tuple[str, ...] | None, fallback: str, prune: str):
    request = Request(b"", targets=targets, threads=1, fallback=fallback)
    assert CompileOptions.of(request).prune == prune


def test_other_values_are_refused():
    with pytest.raises(ByocError, match="prune is 'maybe', accepted are 'off', 'estimated'"):
        compiled(TANHS, "maybe")
