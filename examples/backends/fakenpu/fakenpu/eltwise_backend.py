"""A second backend on the device: a kernel of its own, for all element-wise ops of a region.

```c
static int fakenpu_eltwise_main_0_kernel(void *const *memory, const int64_t *sizes) {
  const float *in0 = memory[0], *in1 = memory[1];
  float *out0 = memory[2];
  for (int64_t i = 0; i < 100; ++i) {
    const float v0 = in0[i] + in1[i];
    const float v1 = tanhf(v0);
    out0[i] = v1;
  }
  return 0;
}
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.backends import Backend, CodegenContext, CSource, Rule
from byoc_mlir.backends.c_compiler import no_c_compiler
from byoc_mlir.backends.region import elementwise_f32, nodes_of, outputs_of
from byoc_mlir.dialects.relay.base import relay_name, shape_of
from byoc_mlir.errors import BackendError
from fakenpu.c_function import parameters_of, signature
from fakenpu.kernel_calls import details
from fakenpu.library import flags, library

EXPRESSIONS = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "abs": "fabsf({0})",
    "tanh": "tanhf({0})",
    "nn.relu": "{0} < 0.0f ? 0.0f : {0}",
}
"""C expressions of the ops, in the elements of their operands."""

_MAX_TENSORS = 64
"""Number of memory arguments that the driver accepts for a kernel."""


class FakeNpuEltwiseBackend(Backend):
    """Backend for element-wise ops on float32 tensors of one shape."""

    name: ClassVar[str] = "fakenpu_eltwise"
    memory_space: ClassVar[str] = "fakenpu"
    api_version: ClassVar[int] = 2

    def unavailable(self) -> str | None:
        return no_c_compiler()

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(EXPRESSIONS, elementwise_f32)

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        device = self.memory_space
        source = f'#include <math.h>\n#include "fakenpu.h"\n\n{_functions(region, device)}'
        libraries = (library(device),)
        return CSource(source, flags(device), libraries, details=details(region, "fused kernel"))


def _functions(region: FuncOp, device: str) -> str:
    """Returns the C of the kernel, and of the region's function, which launches it."""
    given = parameters_of(region)
    outputs = [f"out{i}" for i in range(len(outputs_of(region)))]
    tensors = [*given.values(), *outputs]
    if len(tensors) > _MAX_TENSORS:
        raise BackendError(
            f"a kernel has at most {_MAX_TENSORS} tensors, region @{region.sym_name.data} has"
            f" {len(tensors)}"
        )
    kernel = f"{region.sym_name.data}_kernel"
    lines = [f"static int {kernel}(void *const *memory, const int64_t *sizes) {{"]
    lines.append("  (void)sizes;")
    lines += [f"  const float *{name} = memory[{i}];" for i, name in enumerate(given.values())]
    lines += [f"  float *{name} = memory[{len(given) + i}];" for i, name in enumerate(outputs)]
    lines += _loops(region, given)
    lines += ["  return 0;", "}", "", f"{signature(region)} {{"]
    lines.append(
        f"  void *const memory[] = {{{', '.join(f'(void *){name}' for name in tensors)}}};"
    )
    lines.append(f"  return {device}_launch(queue, {kernel}, memory, {len(tensors)}, NULL, 0);")
    return "\n".join([*lines, "}", ""])


def _loops(region: FuncOp, given: Mapping[SSAValue, str]) -> Sequence[str]:
    """Returns a loop for each number of elements; ops of different numbers share no values."""
    names = {value: f"{name}[i]" for value, name in given.items()}
    names |= {op.results[0]: f"v{i}" for i, op in enumerate(nodes_of(region))}
    lines: list[str] = []
    for count in dict.fromkeys(_elements(value) for value in outputs_of(region)):
        lines.append(f"  for (int64_t i = 0; i < {count}; ++i) {{")
        for op in nodes_of(region):
            if _elements(op.results[0]) == count:
                operands = [names[value] for value in op.operands]
                expression = EXPRESSIONS[relay_name(op)].format(*operands)
                lines.append(f"    const float {names[op.results[0]]} = {expression};")
        lines += [
            f"    out{i}[i] = {names[value]};"
            for i, value in enumerate(outputs_of(region))
            if _elements(value) == count
        ]
        lines.append("  }")
    return lines


def _elements(value: SSAValue) -> int:
    return math.prod(shape_of(value))
