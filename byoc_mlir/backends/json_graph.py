"""Regions as JSON graphs with constants beside them, for backends that bring an engine.

```json
{"symbol": "npu_main_0",
 "nodes": [{"op": "input", "name": "in0", "inputs": [], "attrs": {"shape": [1, 3, 8, 8], …}},
           {"op": "const", "name": "c1", "inputs": [], "attrs": {"shape": [4, 3, 3, 3], …}},
           {"op": "kernel", "name": "npu.conv2d_relu", "inputs": [[0, 0], [1, 0]],
            "attrs": {"shape": [1, 4, 6, 6], "dtype": "float32", "strides": [1, 1], …}}],
 "heads": [[2, 0]]}
```

An input is a pair of a node and which of its results. The attributes of a composite are those of
the first op in it that has any.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.region import kind_of, nodes_of, outputs_of
from byoc_mlir.dialects.byoc import CompositeOp
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.constant import Array
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.errors import CompilationError


def json_graph(region: FuncOp) -> tuple[dict[str, Any], Mapping[str, Array]]:
    """Returns a region's graph, and the arrays of its `const` nodes by name.

    Raises:
        CompilationError: an attribute has no form in JSON.
    """
    graph = _Graph()
    for index, argument in enumerate(region.args):
        graph.add("input", f"in{index}", (argument,))
    for op in nodes_of(region):
        graph.add_kernel(op)
    heads = [graph.entry(value) for value in outputs_of(region)]
    symbol = region.sym_name.data
    return {"symbol": symbol, "nodes": graph.nodes, "heads": heads}, graph.constants


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.constants: dict[str, Array] = {}
        self._entries: dict[SSAValue, list[int]] = {}

    def add(self, op: str, name: str, results: tuple[SSAValue, ...], **more: Any) -> None:
        type_ = tensor_type(results[0])
        attrs = {"shape": list(type_.get_shape()), "dtype": str(numpy_dtype(type_.element_type))}
        attrs |= more.pop("attrs", {})
        self._entries |= {value: [len(self.nodes), i] for i, value in enumerate(results)}
        self.nodes.append({"op": op, "name": name, "inputs": [], "attrs": attrs, **more})

    def add_kernel(self, op: Operation) -> None:
        inputs = [self.entry(value) for value in op.operands]
        if isinstance(op, CompositeOp):
            inputs += [self.entry(value) for value in _embedded(op)]
        attributed = op.ops() if isinstance(op, CompositeOp) else (op,)
        found = (attributes for one in attributed if (attributes := _attributes(one)))
        self.add("kernel", kind_of(op), tuple(op.results), inputs=inputs, attrs=next(found, {}))

    def entry(self, value: SSAValue) -> list[int]:
        if value not in self._entries:
            assert isinstance(value.owner, ConstantOp)
            name = f"c{len(self.nodes)}"
            self.constants[name] = value.owner.array
            self.add("const", name, (value,))
        return self._entries[value]


def _embedded(composite: CompositeOp) -> list[SSAValue]:
    return [op.output for op in composite.ops() if isinstance(op, ConstantOp)]


def _attributes(op: Operation) -> dict[str, Any]:
    if isinstance(op, ConstantOp) or not isinstance(op, RelayOp):
        return {}
    names = op.get_irdl_definition().properties
    given = {name: getattr(op, name) for name in names}
    values = {name: plain(one) for name, one in given.items() if one is not None}
    for name, value in values.items():
        if value is None:
            raise CompilationError(f"{op.name}: property '{name}' has no form in a JSON graph")
    return values


def plain(attribute: object) -> Any:
    """Returns the number, text or list of numbers in an attribute; `None` for other attributes."""
    if isinstance(attribute, IntegerAttr | FloatAttr):
        value = cast(Any, attribute).value.data
        return bool(value) if attribute.type == i1 else value
    if isinstance(attribute, StringAttr):
        return attribute.data
    if isinstance(attribute, DenseArrayBase):
        return list(cast("DenseArrayBase[Any]", attribute).get_values())
    return None
