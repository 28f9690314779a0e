"""C function of a region whose ops are calls: buffers between the calls, status, clean-up.

```c
int npu_main_0(const float *in0, const float *in1, float *out0) {
  float *buf0 = malloc(401);
  int status = buf0 ? 0 : 1;
  if (!status) status = add(in0, in1, buf0, 100);
  if (!status) status = relu(buf0, out0, 100);
  free(buf0);
  return status;
}
```
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.backends.region import constants_of, nodes_of, outputs_of
from byoc_mlir.backends.registry import get_backend
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.errors import BackendError

Call: TypeAlias = Callable[[Operation, Sequence[str], str], str]
"""Generates the C call for an op, from the op, the names of its operands and the name of its
result. The called function returns 0, or a status.
"""


def c_function(region: FuncOp, call: Call, packed: Sequence[str] | None = None) -> str:
    """Generates `int R(const float *constant…, const float *input…, float *output…)` in C.

    It needs `<stdlib.h>` and `<string.h>`.

    Args:
        region: float32 tensors; ops and composites of one result each.
        call: generates the call for each of them.
        packed: names for `CSource.constants`; by default, the region gets its own constants.

    Raises:
        BackendError: with `packed`, an op reads a constant of the region; or the region's backend
            runs on a device, whose functions enqueue their work.
    """
    _check_on_host(region)
    names: dict[SSAValue, str] = {value: f"in{i}" for i, value in enumerate(region.args)}
    if packed is None:
        names |= {op.output: f"const{i}" for i, op in enumerate(constants_of(region))}
        packed = [names[op.output] for op in constants_of(region)]
    outputs = {f"out{i}": value for i, value in enumerate(outputs_of(region))}
    made = [op.results[0] for op in nodes_of(region)]
    names |= {value: f"buf{i}" for i, value in enumerate(made)}
    names |= {value: name for name, value in reversed(outputs.items()) if value in made}
    buffers = {names[value]: _bytes(value) for value in made if names[value] not in outputs}
    parameters = [
        f"const float *{name}" for name in (*packed, *(names[value] for value in region.args))
    ]
    parameters += [f"float *{name}" for name in outputs]
    lines = [f"int {region.sym_name.data}({', '.join(parameters)}) {{"]
    lines += [f"  float *{name} = malloc({size} + 1);" for name, size in buffers.items()]
    lines.append(f"  int status = {' && '.join(buffers) or 1} ? 0 : 1;")
    for op in nodes_of(region):
        operands = [_named(operand, names, region) for operand in op.operands]
        lines.append(f"  if (!status) status = {call(op, operands, names[op.results[0]])};")
    for name, value in outputs.items():
        if names[value] != name:  # a value that is returned twice, or an input
            lines.append(f"  if (!status) memcpy({name}, {names[value]}, {_bytes(value)});")
    lines += [f"  free({name});" for name in buffers]
    return "\n".join([*lines, "  return status;", "}", ""])


def _named(value: SSAValue, names: Mapping[SSAValue, str], region: FuncOp) -> str:
    if value not in names:
        raise BackendError(
            f"region @{region.sym_name.data} reads a constant that `packed` replaced; pack it in"
            " the call of the op that uses it, or let the pattern require `is_constant()`"
        )
    return names[value]


def _bytes(value: SSAValue) -> int:
    return 4 * math.prod(shape_of(value))


def _check_on_host(region: FuncOp) -> None:
    compiler = region_compiler(region)
    space = HOST_SPACE if compiler is None else get_backend(compiler).memory_space
    if space != HOST_SPACE:
        raise BackendError(
            f"c_function generates code for the host's memory, but backend '{compiler}' runs on"
            f" device '{space}'; generate C that enqueues the calls on its first parameter, the"
            " queue"
        )
