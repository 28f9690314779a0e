"""A backend that writes regions as JSON graphs, for a runtime that builds oneDNN primitives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.func import FuncOp

from byoc_mlir.backends import Backend, Blob, CodegenContext, OpDetail, Rule
from byoc_mlir.backends.json_graph import json_graph
from byoc_mlir.backends.region import elementwise_f32, nodes_of, on_channels, product_f32
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.onednn.library import unavailable_reason
from byoc_mlir.patterns import CompositePattern, Match, is_op, wildcard
from dnnl_json.runtime import DnnlJsonModule


class DnnlJsonBackend(Backend):
    """Backend for convolutions and dense layers with their epilogues, and element-wise ops."""

    name: ClassVar[str] = "dnnl_json"
    api_version: ClassVar[int] = 1

    def unavailable(self) -> str | None:
        return unavailable_reason()

    def op_rules(self) -> Mapping[str, Rule]:
        elementwise = ("add", "subtract", "multiply", "nn.relu", "tanh", "sigmoid")
        return {
            **dict.fromkeys(elementwise, elementwise_f32),
            "nn.conv2d": product_f32,
            "nn.dense": product_f32,
        }

    def patterns(self) -> Sequence[CompositePattern]:
        rows: list[CompositePattern] = []
        for anchor in ("conv2d", "dense"):
            product = is_op(f"nn.{anchor}")(wildcard(), wildcard()).named("product")
            biased = is_op("nn.bias_add")(product, wildcard()).named("biased")
            for name, pattern in {
                f"{anchor}_bias_relu": is_op("nn.relu")(biased),
                f"{anchor}_bias": biased,
                f"{anchor}_relu": is_op("nn.relu")(product),
            }.items():
                rows.append(CompositePattern(f"{self.name}.{name}", pattern, self._check))
        return rows

    def codegen(self, region: FuncOp, context: CodegenContext) -> Blob:
        graph, constants = json_graph(region)
        details = [OpDetail(node_names(op), "oneDNN") for op in nodes_of(region)]
        return Blob.of(DnnlJsonModule(graph, constants), details)

    def _check(self, match: Match) -> str | None:
        reason = on_channels(match.op("biased")) if "biased" in match else None
        return reason or product_f32(match.op("product"))
