"""A backend that generates C; see `docs/codegen-c.md`.

Every op is a call of a function made by a macro, with a buffer for its result. All regions of a
model are in one source, and so in one library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.backends import Backend, CodegenContext, CSource, OpDetail, Rule
from byoc_mlir.backends.c_compiler import find_c_compiler, no_c_compiler
from byoc_mlir.backends.c_function import c_function
from byoc_mlir.backends.region import constants_of, elementwise_f32, nodes_of, outputs_of
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name, shape_of

EXPRESSIONS = {
    "add": "a[i] + b[i]",
    "subtract": "a[i] - b[i]",
    "multiply": "a[i] * b[i]",
    "divide": "a[i] / b[i]",
    "negative": "-a[i]",
    "abs": "fabsf(a[i])",
    "exp": "expf(a[i])",
    "sqrt": "sqrtf(a[i])",
    "tanh": "tanhf(a[i])",
    "nn.relu": "a[i] < 0.0f ? 0.0f : a[i]",
}
"""C expressions of the ops, in the elements of their operands."""

PROLOGUE = """\
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data; DLDevice device; int32_t ndim; DLDataType dtype;
  int64_t *shape, *strides; uint64_t byte_offset;
} DLTensor;
#define DATA(tensor) ((float *)((char *)(tensor)->data + (tensor)->byte_offset))

#define UNARY(id, expression, count)                              \\
  static int id(const float *a, float *out) {                     \\
    for (int64_t i = 0; i < (count); ++i) out[i] = (expression);  \\
    return 0;                                                     \\
  }
#define BINARY(id, expression, count)                             \\
  static int id(const float *a, const float *b, float *out) {     \\
    for (int64_t i = 0; i < (count); ++i) out[i] = (expression);  \\
    return 0;                                                     \\
  }
"""


class CCompilerBackend(Backend):
    """Backend for element-wise ops on float32 tensors of one shape."""

    name: ClassVar[str] = "ccompiler"
    api_version: ClassVar[int] = 1

    def unavailable(self) -> str | None:
        return no_c_compiler()

    def describe(self) -> str:
        return f"C compiler {' '.join(find_c_compiler())}"

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(EXPRESSIONS, elementwise_f32)

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        return self.codegen_regions([region], context)[0]

    def codegen_regions(
        self, regions: Sequence[FuncOp], context: CodegenContext
    ) -> Sequence[CSource]:
        source = PROLOGUE + "".join(map(functions_of, regions))
        return [CSource(source, ("-O3",), details=_details(region)) for region in regions]


def functions_of(region: FuncOp) -> str:
    """Returns a region's C: a function for each op, the region itself, its wrapper for DLPack
    tensors.
    """
    symbol = region.sym_name.data
    functions: list[str] = []

    def call(op: Operation, operands: Sequence[str], result: str) -> str:
        function = f"{symbol}_{len(functions)}"
        macro = "BINARY" if len(operands) == 2 else "UNARY"
        count = math.prod(shape_of(op.results[0]))
        functions.append(f"{macro}({function}, {EXPRESSIONS[relay_name(op)]}, {count})\n")
        return f"{function}({', '.join(operands)}, {result})"

    body = c_function(region, call)
    tensors = len([*constants_of(region), *region.args, *outputs_of(region)])
    parameters = ", ".join(f"DLTensor *arg{i}" for i in range(tensors))
    data = ", ".join(f"DATA(arg{i})" for i in range(tensors))
    wrapper = f"int {symbol}_wrapper({parameters}) {{ return {symbol}({data}); }}\n"
    return f"\n{''.join(functions)}\n{body}\n{wrapper}"


def _details(region: FuncOp) -> tuple[OpDetail, ...]:
    return tuple(OpDetail(node_names(op), "C loop") for op in nodes_of(region))
