"""Building and running the primitives of a JSON graph; nothing here needs the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byoc_mlir.backends import Array
from byoc_mlir.backends.json_module import GraphEngine, JsonModule
from byoc_mlir.onednn.constants import BINARY, ELTWISE, FORWARD_INFERENCE, Arg
from byoc_mlir.onednn.descriptors import Descriptor, PrimitiveAttributes
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.primitives import BoundPrimitive, Primitive, PrimitiveDescriptor
from byoc_mlir.runtime.system.signals import signals_held

CONVOLUTION_AUTO = 3
BINARY_OPS = {"add": "add", "multiply": "mul", "subtract": "sub"}
ELTWISE_OPS = {"nn.relu": "relu", "tanh": "tanh", "sigmoid": "logistic"}
"""Relay ops to oneDNN's names."""


class DnnlJsonModule(JsonModule):
    """A graph of convolutions, dense layers and element-wise kernels."""

    def build_engine(self) -> GraphEngine:
        return DnnlEngine(self.graph, self.constants)


class DnnlEngine(GraphEngine):
    """One primitive for each kernel of the graph, and a buffer for each of its values."""

    def __init__(self, graph: Mapping[str, Any], constants: Mapping[str, Array]):
        self._arrays = [_array(node, constants) for node in graph["nodes"]]
        self._inputs = [i for i, node in enumerate(graph["nodes"]) if node["op"] == "input"]
        self._outputs = [node for node, _ in graph["heads"]]
        self._calls = [
            self._call(index, node)
            for index, node in enumerate(graph["nodes"])
            if node["op"] == "kernel"
        ]

    def run(self, inputs: list[Array], outputs: list[Array]) -> None:
        for index, array in zip(self._inputs, inputs, strict=True):
            np.copyto(self._arrays[index], array)
        with signals_held():  # matmuls may move the stack pointer, see docs/dev-notes/dnnl.md
            for call in self._calls:
                call.run()
        for index, array in zip(self._outputs, outputs, strict=True):
            np.copyto(array, self._arrays[index])

    def _call(self, index: int, node: Mapping[str, Any]) -> BoundPrimitive:
        """Returns the primitive of a kernel with the arrays that it reads and writes."""
        kernel = str(node["name"]).removeprefix("dnnl_json.")
        operands = [self._arrays[entry] for entry, _ in node["inputs"]]
        result = self._arrays[index]
        described = [_descriptor(one.shape) for one in operands]
        after = _descriptor(result.shape)
        if kernel in BINARY_OPS:
            kind, roles = "binary", (Arg.SRC, Arg.SRC_1)
            arguments = [BINARY[BINARY_OPS[kernel]], *described, after]
        elif kernel in ELTWISE_OPS:
            kind, roles = "eltwise_forward", (Arg.SRC,)
            algorithm = ELTWISE[ELTWISE_OPS[kernel]]
            arguments = [FORWARD_INFERENCE, algorithm, *described, after, 0.0, 0.0]
        else:
            kind, roles = "inner_product_forward", (Arg.SRC, Arg.WEIGHTS, Arg.BIAS)
            bias = described[2] if len(described) > 2 else None
            arguments = [FORWARD_INFERENCE, *described[:2], bias, after]
            if "conv2d" in kernel:
                kind = "convolution_forward"
                window = _window(node["attrs"])
                arguments = [FORWARD_INFERENCE, CONVOLUTION_AUTO, *arguments[1:], *window]
        found = PrimitiveDescriptor(
            f"dnnl_{kind}_primitive_desc_create", engine(), *arguments, _attributes(kernel)
        )
        arrays = dict(zip(roles, operands, strict=False))
        return BoundPrimitive(Primitive(found), {**arrays, Arg.DST: result})


def _attributes(kernel: str) -> PrimitiveAttributes:
    if not kernel.endswith("_relu"):
        return PrimitiveAttributes()
    return PrimitiveAttributes([("dnnl_post_ops_append_eltwise", (ELTWISE["relu"], 0.0, 0.0))])


def _descriptor(shape: Sequence[int]) -> Descriptor:
    """Returns the descriptor of a row-major tensor; oneDNN has none of rank 0."""
    return Descriptor.dense(tuple(shape) or (1,))


def _array(node: Mapping[str, Any], constants: Mapping[str, Array]) -> Array:
    if node["op"] == "const":
        return np.ascontiguousarray(constants[node["name"]])
    return np.empty(node["attrs"]["shape"], node["attrs"]["dtype"])


def _window(attrs: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Returns strides, dilations less one, and the padding before and behind."""
    begin, end = attrs["padding"][:2], attrs["padding"][2:]
    dilations = [size - 1 for size in attrs["dilation"]]
    return [tuple(sizes) for sizes in (attrs["strides"], dilations, begin, end)]
