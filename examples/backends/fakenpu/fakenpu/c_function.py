"""C function of a region on the device: memory between the calls, status, clean-up.

```c
int fakenpu_main_0(void *queue, const float *const0, const float *in0, float *out0) {
  void *buf0 = NULL;
  int status = 0;
  if (!status) status = fakenpu_allocate(400, &buf0);
  if (!status) status = fakenpu_dense(queue, in0, const0, NULL, buf0, 10, 10, 10, 0);
  if (!status) status = fakenpu_relu(queue, buf0, out0, 100);
  if (buf0) fakenpu_release(queue, buf0);
  return status;
}
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.backends.region import constants_of, nodes_of, outputs_of
from byoc_mlir.dialects.relay.base import shape_of
from fakenpu.kernel_calls import KernelCall, kernel_call


def parameters_of(region: FuncOp) -> Mapping[SSAValue, str]:
    """Returns the names of constants and inputs, in the order of the parameters."""
    constants = {op.output: f"const{i}" for i, op in enumerate(constants_of(region))}
    return {**constants, **{value: f"in{i}" for i, value in enumerate(region.args)}}


def signature(region: FuncOp) -> str:
    """Returns the C function's head, with parameters `const0…`, `in0…`, `out0…`."""
    given = [f"const float *{name}" for name in parameters_of(region).values()]
    results = [f"float *out{i}" for i in range(len(outputs_of(region)))]
    return f"int {region.sym_name.data}({', '.join(['void *queue', *given, *results])})"


def c_function(region: FuncOp, device: str) -> str:
    """Generates the C function of a region of float32 ops and composites with one result each."""
    outputs = {f"out{i}": value for i, value in enumerate(outputs_of(region))}
    made = [op.results[0] for op in nodes_of(region)]
    names = {**parameters_of(region), **{value: f"buf{i}" for i, value in enumerate(made)}}
    names |= {value: name for name, value in reversed(outputs.items()) if value in made}
    buffers = {names[value]: _bytes(value) for value in made if names[value] not in outputs}
    calls = [f"allocate({size}, &{name})" for name, size in buffers.items()]
    calls += [_call(kernel_call(op), names, names[op.results[0]]) for op in nodes_of(region)]
    calls += [
        f"copy(queue, {names[value]}, {name}, {_bytes(value) // 4})"
        for name, value in outputs.items()
        if names[value] != name  # a value that is returned twice, or an input
    ]
    lines = [f"{signature(region)} {{"]
    lines += [f"  void *{name} = NULL;" for name in buffers]
    lines.append("  int status = 0;")
    lines += [f"  if (!status) status = {device}_{call};" for call in calls]
    lines += [f"  if ({name}) {device}_release(queue, {name});" for name in buffers]
    return "\n".join([*lines, "  return status;", "}", ""])


def _call(call: KernelCall, names: Mapping[SSAValue, str], result: str) -> str:
    operands = ["NULL" if value is None else names[value] for value in call.operands]
    return f"{call.function}({', '.join(['queue', *operands, result, *map(str, call.sizes)])})"


def _bytes(value: SSAValue) -> int:
    return 4 * math.prod(shape_of(value))
