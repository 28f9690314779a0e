"""Building and running the primitives of a JSON graph; nothing here needs the compiler.

Numbers are those of `dnnl_types.h`, https://oneapi-src.github.io/oneDNN/v3.1/group_dnnl_api.html
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byoc_mlir.backends import Array
from byoc_mlir.backends.json_module import Engine, JsonModule
from byoc_mlir.backends.onednn import ExecutionArgument, load_library
from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.system.signals import signals_held

SRC, SRC_1, DST, WEIGHTS, BIAS, SCRATCHPAD = 1, 2, 17, 33, 41, 80
USER_SCRATCHPAD, QUERY_SCRATCHPAD, ALLOCATE = 1, 136, ctypes.c_void_p(-1)
F32, CPU, IN_ORDER, INFERENCE, CONVOLUTION_AUTO = 3, 1, 1, 96, 3
BINARY = {"add": 0x1FFF0, "multiply": 0x1FFF1, "subtract": 0x1FFF5}
ELTWISE = {"nn.relu": 0x20, "tanh": 0x21, "sigmoid": 0x29}


class DnnlJsonModule(JsonModule):
    """A graph of convolutions, dense layers and element-wise kernels."""

    def build_engine(self) -> Engine:
        return DnnlEngine(self.graph, self.constants)


class DnnlEngine(Engine):
    """One primitive for each kernel of the graph, and a buffer for each of its values."""

    def __init__(self, graph: Mapping[str, Any], constants: Mapping[str, Array]):
        self._handles: list[tuple[str, ctypes.c_void_p]] = []
        self._library = load_library().handle
        self._engine = self._make("engine", CPU, ctypes.c_size_t(0))
        self._stream = self._make("stream", self._engine, IN_ORDER)
        self._arrays = [_array(node, constants) for node in graph["nodes"]]
        self._memories = [self._memory(array) for array in self._arrays]
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
        with signals_held():  # products may have the stack pointer elsewhere, see docs/dnnl.md
            for primitive, arguments in self._calls:
                self._check(
                    "dnnl_primitive_execute", primitive, self._stream, len(arguments), arguments
                )
            self._check("dnnl_stream_wait", self._stream)
        for index, array in zip(self._outputs, outputs, strict=True):
            np.copyto(array, self._arrays[index])

    def __del__(self) -> None:
        for kind, handle in reversed(self._handles):
            getattr(self._library, f"dnnl_{kind}_destroy")(handle)

    def _call(self, index: int, node: Mapping[str, Any]) -> tuple[ctypes.c_void_p, Any]:
        """The primitive of a kernel, and the memories to execute it with."""
        kernel = str(node["name"]).removeprefix("dnnl_json.")
        operands = [entry for entry, _ in node["inputs"]]
        described = [self._descriptor(self._arrays[entry].shape) for entry in operands]
        result = self._descriptor(self._arrays[index].shape)
        if kernel in BINARY:
            kind, roles = "binary", (SRC, SRC_1)
            arguments = [BINARY[kernel], *described, result]
        elif kernel in ELTWISE:
            kind, roles = "eltwise_forward", (SRC,)
            zero = ctypes.c_float(0)
            arguments = [INFERENCE, ELTWISE[kernel], *described, result, zero, zero]
        else:
            kind, roles = "inner_product_forward", (SRC, WEIGHTS, BIAS)
            bias = described[2] if len(described) > 2 else None
            arguments = [INFERENCE, *described[:2], bias, result]
            if "conv2d" in kernel:
                kind = "convolution_forward"
                arguments = [INFERENCE, CONVOLUTION_AUTO, *arguments[1:], *_window(node["attrs"])]
        attributes = self._attributes(kernel)
        descriptor = self._make(f"{kind}_primitive_desc", self._engine, *arguments, attributes)
        memories = [self._memories[operand] for operand in operands]
        values = [*zip(roles, memories, strict=False), (DST, self._memories[index])]
        values.append((SCRATCHPAD, self._scratchpad(descriptor)))
        pairs = (ExecutionArgument * len(values))(
            *((role, memory.value) for role, memory in values)
        )
        return self._make("primitive", descriptor), pairs

    def _attributes(self, kernel: str) -> ctypes.c_void_p:
        attributes = self._make("primitive_attr")
        self._check("dnnl_primitive_attr_set_scratchpad_mode", attributes, USER_SCRATCHPAD)
        if kernel.endswith("_relu"):
            chain, zero = self._make("post_ops"), ctypes.c_float(0)
            self._check("dnnl_post_ops_append_eltwise", chain, ELTWISE["nn.relu"], zero, zero)
            self._check("dnnl_primitive_attr_set_post_ops", attributes, chain)
        return attributes

    def _scratchpad(self, descriptor: ctypes.c_void_p) -> ctypes.c_void_p:
        """Memory of our own: the library's belongs to the thread that made the primitive."""
        query = self._library.dnnl_primitive_desc_query_md
        query.restype = ctypes.c_void_p
        described = ctypes.c_void_p(query(descriptor, QUERY_SCRATCHPAD, 0))
        return self._make("memory", described, self._engine, ALLOCATE)

    def _descriptor(self, shape: Sequence[int]) -> ctypes.c_void_p:
        """A dense, row-major tensor; oneDNN has none of rank 0."""
        sizes = tuple(shape) or (1,)
        dims = (ctypes.c_int64 * len(sizes))(*sizes)
        steps = [int(np.prod(sizes[i + 1 :], dtype=np.int64)) for i in range(len(sizes))]
        strides = (ctypes.c_int64 * len(sizes))(*steps)
        return self._make("memory_desc", len(sizes), dims, F32, strides, how="create_with_strides")

    def _memory(self, array: Array) -> ctypes.c_void_p:
        data = ctypes.c_void_p(array.ctypes.data)
        return self._make("memory", self._descriptor(array.shape), self._engine, data)

    def _make(self, kind: str, *arguments: Any, how: str = "create") -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._check(f"dnnl_{kind}_{how}", ctypes.byref(handle), *arguments)
        self._handles.append(("primitive_desc" if "primitive_desc" in kind else kind, handle))
        return handle

    def _check(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise ExecutionError(f"oneDNN: {function} returned status {status}")


def _array(node: Mapping[str, Any], constants: Mapping[str, Array]) -> Array:
    if node["op"] == "const":
        return np.ascontiguousarray(constants[node["name"]])
    return np.empty(node["attrs"]["shape"], node["attrs"]["dtype"])


def _window(attrs: Mapping[str, Any]) -> list[Any]:
    """Strides, dilations less one, and the padding before and behind, as oneDNN takes them."""
    begin, end = attrs["padding"][:2], attrs["padding"][2:]
    lists = (attrs["strides"], [size - 1 for size in attrs["dilation"]], begin, end)
    return [(ctypes.c_int64 * 2)(*sizes) for sizes in lists]
