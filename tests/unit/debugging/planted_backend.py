"""Backend in which its option plants a fault."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.backends import Backend, Blob, Option, register_backend
from byoc_mlir.backends.base import Rule
from byoc_mlir.backends.json_graph import json_graph
from byoc_mlir.backends.json_module import GraphEngine, JsonModule
from byoc_mlir.dialects.relay import elementwise
from byoc_mlir.patterns import CompositePattern, is_op, wildcard

FAULTS = ("none", "weight", "operands", "relu", "bias", "epsilon", "rewrite", "wide", "merged")


@dataclass(frozen=True)
class PlantedRewrite(ModulePass):
    """Pass that replaces every subtraction by an addition."""

    name = "planted-rewrite"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for found in list(op.walk()):
            if isinstance(found, elementwise.SubtractOp):
                block = found.parent
                assert block is not None
                new = elementwise.AddOp(found.lhs, found.rhs)
                new.location = found.location
                block.insert_op_before(new, found)
                found.output.replace_all_uses_with(new.output)
                block.erase_op(found)


@register_backend
class Planted(Backend):
    """Backend for dense layers with their epilogues, and element-wise ops, in numpy."""

    name = "planted"
    options = {"fault": Option("none", "what is wrong", FAULTS)}

    def op_rules(self) -> Mapping[str, Rule]:
        names = ("add", "subtract", "multiply", "nn.relu", "nn.bias_add", "nn.dense", "tanh")
        more = ("nn.softmax", "nn.batch_norm")
        return dict.fromkeys((*names, *more), lambda op: None)

    def patterns(self) -> Sequence[CompositePattern]:
        dense = is_op("nn.dense")(wildcard(), wildcard())
        biased = (is_op("nn.bias_add") | is_op("add"))(dense, wildcard())
        rows = [
            CompositePattern("planted.dense_bias_relu", is_op("nn.relu")(biased)),
            CompositePattern("planted.dense_bias", biased),
        ]
        if self.settings["fault"] == "wide":
            product = is_op("multiply")(is_op("tanh")(wildcard()), wildcard())
            rows.append(CompositePattern("planted.gate", product))
        return rows

    def module_passes(self):
        return (PlantedRewrite(),) if self.settings["fault"] == "rewrite" else ()

    def codegen(self, region, context):
        graph, constants = json_graph(region)
        return Blob.of(PlantedModule({**graph, "fault": self.settings["fault"]}, constants))


class PlantedModule(JsonModule):
    """Region's module, whose engine has the planted fault."""

    def build_engine(self) -> GraphEngine:
        return _Engine(self.graph, self.constants)


class _Engine(GraphEngine):
    def __init__(self, graph: Mapping[str, Any], constants: Mapping[str, Any]):
        self._graph, self._constants = graph, constants
        self._fault = graph["fault"]
        self._denses = 0

    def run(self, inputs, outputs):
        self._denses = 0
        values: list[Any] = []
        given = iter(inputs)
        for node in self._graph["nodes"]:
            if node["op"] == "input":
                values.append(next(given).copy())
            elif node["op"] == "const":
                values.append(self._constants[node["name"]])
            else:
                operands = [values[at] for at, _ in node["inputs"]]
                values.append(self._kernel(node["name"].removeprefix("planted."), operands, node))
        for (at, _), output in zip(self._graph["heads"], outputs, strict=True):
            output[...] = values[at]

    def _kernel(self, name: str, operands: list[Any], node: Mapping[str, Any]) -> Any:
        first = operands[0]
        if name.startswith(("nn.dense", "dense")):
            return self._dense(name, operands)
        if name == "nn.softmax":
            shifted = np.exp(first - first.max(-1, keepdims=True))
            return shifted / shifted.sum(-1, keepdims=True)
        if name == "nn.batch_norm":
            gamma, beta, mean, variance = operands[1:]
            epsilon = 10 * node["attrs"]["epsilon"] * (self._fault == "epsilon")
            epsilon = epsilon or node["attrs"]["epsilon"]
            return (first - mean) / np.sqrt(variance + epsilon) * gamma + beta
        if name == "subtract" and self._fault == "operands":
            return operands[1] - first
        if name == "gate":
            return np.tanh(first) + operands[1]  # it is a product
        return {
            "add": lambda: first + operands[1],
            "nn.bias_add": lambda: first + operands[1],
            "subtract": lambda: first - operands[1],
            "multiply": lambda: first * operands[1],
            "nn.relu": lambda: np.maximum(first, 0),
            "tanh": lambda: np.tanh(first),
        }[name]()

    def _dense(self, name: str, operands: list[Any]) -> Any:
        weight = operands[1]
        self._denses += 1
        if self._fault == "weight" and weight.shape[0] == 5:
            weight = weight.copy()
            weight[2, 1] += 0.5
        result = operands[0] @ weight.T
        if self._fault == "merged" and self._denses > 1:
            result[0, 0] += 1  # the second product of a region
        if "bias" in name and self._fault != "bias":
            result = result + operands[2]
        return np.maximum(result, 0) if name.endswith("relu") and self._fault != "relu" else result
