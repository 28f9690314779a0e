"""A backend that generates C source which calls oneDNN.

```c
int dnnl_c_main_0(const float *const0, const float *const1, const float *in0, float *out0) {
  float *buf0 = malloc(18433);
  int status = buf0 ? 0 : 1;
  if (!status) status = product(in0, const0, const1, buf0, 4, (int64_t[]){1, 32, 14, 14}, …, 1);
  …
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends import Backend, CodegenContext, CSource, OpDetail, Rule
from byoc_mlir.backends.c_compiler import no_c_compiler
from byoc_mlir.backends.c_function import c_function
from byoc_mlir.backends.region import elementwise_f32, nodes_of, on_channels, product_f32
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import ints, relay_name, shape_of
from byoc_mlir.dialects.relay.window import Conv2DOp, ConvOp
from byoc_mlir.onednn.library import load_library, unavailable_reason
from byoc_mlir.patterns import CompositePattern, Match, is_op, wildcard

BINARY = {"add": 0x1FFF0, "multiply": 0x1FFF1, "subtract": 0x1FFF5}
ELTWISE = {"nn.relu": 0x20, "tanh": 0x21, "sigmoid": 0x29}
"""Relay ops to oneDNN's `dnnl_alg_kind_t`."""


class DnnlCBackend(Backend):
    """Backend for convolutions and dense layers, with bias and ReLU, and element-wise ops."""

    name: ClassVar[str] = "dnnl_c"
    api_version: ClassVar[int] = 1

    def unavailable(self) -> str | None:
        return unavailable_reason() or no_c_compiler()

    def op_rules(self) -> Mapping[str, Rule]:
        elementwise = dict.fromkeys((*BINARY, *ELTWISE), elementwise_f32)
        return {**elementwise, "nn.conv2d": product_f32, "nn.dense": product_f32}

    def patterns(self) -> Sequence[CompositePattern]:
        conv = is_op("nn.conv2d")(wildcard(), wildcard()).named("conv")
        biased = is_op("nn.bias_add")(conv, wildcard()).named("biased")
        rows = {
            "conv2d_bias_relu": is_op("nn.relu")(biased),
            "conv2d_bias": biased,
            "conv2d_relu": is_op("nn.relu")(conv),
        }
        return [CompositePattern(f"dnnl_c.{name}", row, _check) for name, row in rows.items()]

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        return self.codegen_regions([region], context)[0]

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        kernels = Path(__file__).with_name("kernels.c").read_text()
        source = kernels + "".join(c_function(region, _call) for region in regions)
        libraries = (load_library().requirement,)
        return [CSource(source, libraries=libraries, details=_details(r)) for r in regions]


def _call(op: Operation, operands: Sequence[str], result: str) -> str:
    """Returns the call of the kernel that computes an op or a composite."""
    name = relay_name(op)
    if name in BINARY:
        return (
            f"binary({BINARY[name]}, {', '.join(operands)}, {result}, {_elements(op.results[0])})"
        )
    if name in ELTWISE:
        return f"eltwise({ELTWISE[name]}, {operands[0]}, {result}, {_elements(op.results[0])})"
    inner = list(op.ops()) if isinstance(op, CompositeOp) else [op]
    data, weight, bias = (*operands, "NULL")[:3]
    dims = [_numbers(shape_of(value)) for value in (*inner[0].operands[:2], op.results[0])]
    window = _window(inner[0]) if isinstance(inner[0], Conv2DOp) else "NULL"
    rank, relu = len(shape_of(op.results[0])), int(relay_name(inner[-1]) == "nn.relu")
    tensors = f"{data}, {weight}, {bias}, {result}"
    return f"product({tensors}, {rank}, {', '.join(dims)}, {window}, {relu})"


def _window(conv: ConvOp) -> str:
    dilation = [size - 1 for size in ints(conv.dilation)]
    return _numbers((*ints(conv.strides), *dilation, *ints(conv.padding)))


def _numbers(numbers: Sequence[int]) -> str:
    return f"(const int64_t[]){{{', '.join(map(str, numbers))}}}"


def _elements(value: SSAValue) -> int:
    return math.prod(shape_of(value))


def _check(match: Match) -> str | None:
    reason = on_channels(match.op("biased")) if "biased" in match else None
    return reason or product_f32(match.op("conv"))


def _details(region: FuncOp) -> tuple[OpDetail, ...]:
    return tuple(OpDetail(node_names(op), "oneDNN from C") for op in nodes_of(region))
