"""A backend that writes regions down in its own format; see `docs/codegen-blob.md`.

```
examplejson_main_0
  input 0 10 10
  const 1 shape: 10 10 values: 0.5 …
  add 2 inputs: 0 1 shape: 10 10
  output 2
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from byoc_mlir.backends import Backend, Blob, CodegenContext, OpDetail, Rule
from byoc_mlir.backends.region import constants_of, elementwise_f32, nodes_of, outputs_of
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay.base import relay_name, shape_of
from examplejson.runtime import ExampleJsonModule

NAMES = {"add": "add", "subtract": "sub", "multiply": "mul", "nn.relu": "relu"}
"""Names of Relay ops in the format."""


class ExampleJsonBackend(Backend):
    """Backend for additions, subtractions, products and ReLUs of float32 tensors of one shape."""

    name: ClassVar[str] = "examplejson"
    api_version: ClassVar[int] = 1

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(NAMES, elementwise_f32)

    def codegen(self, region: FuncOp, context: CodegenContext) -> Blob:
        return self.codegen_regions([region], context)[0]

    def codegen_regions(self, regions: Sequence[FuncOp], context: CodegenContext) -> Sequence[Blob]:
        module = ExampleJsonModule("\n".join(map(graph_text, regions)) + "\n")
        return [Blob.of(module, _details(region)) for region in regions]


def graph_text(region: FuncOp) -> str:
    """Returns a region in ExampleJSON."""
    ids: dict[SSAValue, int] = {}
    inputs = (f"  input {_number(ids, value)} {_shape(value)}" for value in region.args)
    lines = [region.sym_name.data, *inputs]
    for op in constants_of(region):
        values = " ".join(repr(float(value)) for value in op.array.reshape(-1))
        number, shape = _number(ids, op.output), _shape(op.output)
        lines.append(f"  const {number} shape: {shape} values: {values}")
    for op in nodes_of(region):
        inputs = " ".join(str(ids[operand]) for operand in op.operands)
        number, shape = _number(ids, op.results[0]), _shape(op.results[0])
        lines.append(f"  {NAMES[relay_name(op)]} {number} inputs: {inputs} shape: {shape}")
    lines += [f"  output {ids[value]}" for value in outputs_of(region)]
    return "\n".join(lines)


def _number(ids: dict[SSAValue, int], value: SSAValue) -> int:
    return ids.setdefault(value, len(ids))


def _shape(value: SSAValue) -> str:
    return " ".join(map(str, shape_of(value)))


def _details(region: FuncOp) -> tuple[OpDetail, ...]:
    return tuple(OpDetail(node_names(op), "numpy") for op in nodes_of(region))
