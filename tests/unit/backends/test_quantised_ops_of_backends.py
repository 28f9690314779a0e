"""Backends that take quantised ops which the compiler would otherwise decompose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import Backend, CodegenContext, CSource, Rule, register_backend
from byoc_mlir.dialects.relay.base import relay_name, shape_of
from byoc_mlir.testing.reference import run_onnxruntime

_MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[64] x) => (float[64] y, uint8[64] q) {
  [quantize] q = QuantizeLinear(x, scale, zero)
  [dequantize] y = DequantizeLinear(q, scale, zero)
}
"""

_STATEMENTS = {
    "qnn.quantize": (
        "float v = nearbyintf(in[i] / scale[0]) + zero[0]; out[i] = v < 0 ? 0 : v > 255 ? 255 : v;",
        "const float *scale, const uint8_t *zero, const float *in, uint8_t *out",
    ),
    "qnn.dequantize": (
        "out[i] = (in[i] - zero[0]) * scale[0];",
        "const float *scale, const uint8_t *zero, const uint8_t *in, float *out",
    ),
}


class _Quantiser(Backend):
    """Backend for single quantised ops, whose scale and zero point are constants."""

    quantised_ops = frozenset({"qnn.quantize", "qnn.dequantize"})
    taken: ClassVar[Sequence[str]] = ("qnn.quantize", "qnn.dequantize")

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(self.taken, lambda op: None)

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        (op,) = (one for one in region.walk() if relay_name(one).startswith("qnn."))
        statement, parameters = _STATEMENTS[relay_name(op)]
        return CSource(
            f"#include <math.h>\n#include <stdint.h>\n"
            f"int {region.sym_name.data}({parameters}) {{\n"
            f"  for (int i = 0; i < {shape_of(op.operands[0])[0]}; ++i) {{ {statement} }}\n"
            "  return 0;\n}\n"
        )


@register_backend
class Dequantiser(_Quantiser):
    """Backend for the other op."""

    name: ClassVar[str] = "dequantiser"
    taken: ClassVar[Sequence[str]] = ("qnn.dequantize",)


@register_backend
class OneOfThem(_Quantiser):
    """Backend that keeps both ops and takes one: the other one is the host's."""

    name: ClassVar[str] = "half_quantiser"
    taken: ClassVar[Sequence[str]] = ("qnn.quantize",)


def _model() -> ModelProto:
    model = parser.parse_model(_MODEL)
    for name, value in (("scale", np.float32(0.05)), ("zero", np.uint8(120))):
        model.graph.initializer.append(numpy_helper.from_array(np.array(value), name))
    return model


@pytest.mark.parametrize(
    ("targets", "places"),
    [
        ((), ("host", "host")),
        (("half_quantiser",), ("half_quantiser", "host")),
        (("half_quantiser", "dequantiser"), ("half_quantiser", "dequantiser")),
    ],
)
def test_ops_stay_whole_for_backends_and_the_host_decomposes_the_rest(
    targets: tuple[str, ...], places: tuple[str, str]
) -> None:
    x = np.linspace(-9, 9, 64, dtype=np.float32)
    with byoc_mlir.compile(_model(), targets=targets, fallback="allow") as executable:
        found = executable.run({"x": x})
        report = executable.report()
    assert tuple(row.placement for row in report) == places
    for name, wanted in run_onnxruntime(_model(), {"x": x}).items():
        np.testing.assert_array_equal(found[name], wanted)
