"""Right backend in numpy, and its mutations.

`numpy_backend(name)` computes right results; `kernels=` replaces the kernels of some ops, `run=`
the run of a region, `rules=` the rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy_kernels import Array, Kernel, gru, lstm, roi_pool, scatter_elements, topk, wide
from xdsl.dialects.func import FuncOp

from byoc_mlir.backends import (
    Backend,
    Blob,
    CodegenContext,
    Profitability,
    RegionFunction,
    RegionModule,
    Rule,
)
from byoc_mlir.backends.json_graph import json_graph
from byoc_mlir.patterns import CompositePattern, is_op, wildcard


def windows(attrs: Mapping[str, Any], data: Array, sizes: Sequence[int], fill: float) -> Array:
    """Returns the windows of an image: two axes for their positions, two for their elements."""
    padding, dilation = attrs["padding"], attrs["dilation"]
    spans = [(size - 1) * step + 1 for size, step in zip(sizes, dilation, strict=True)]
    ends = list(padding[2:])
    if attrs.get("ceil_mode"):
        ends = [end + step - 1 for end, step in zip(ends, attrs["strides"], strict=True)]
    widths = [(0, 0), (0, 0), (padding[0], ends[0]), (padding[1], ends[1])]
    view = sliding_window_view(np.pad(data, widths, constant_values=fill), spans, (2, 3))
    (down, right), (row, column) = attrs["strides"], dilation
    return view[:, :, ::down, ::right, ::row, ::column]


def conv2d(attrs: Mapping[str, Any], data: Array, weight: Array, *bias: Array) -> Array:
    """Computes a convolution, with a bias for each channel if there is one."""
    groups = attrs.get("groups", 1)
    parts = [
        np.einsum(
            "ncyxij,ocij->noyx", windows(attrs, wide(part), weight.shape[2:], 0), wide(kernel)
        )
        for part, kernel in zip(np.split(data, groups, 1), np.split(weight, groups, 0), strict=True)
    ]
    result = np.concatenate(parts, 1)
    return result + wide(bias[0]).reshape(-1, 1, 1) if bias else result


def max_pool2d(attrs: Mapping[str, Any], data: Array) -> Array:
    return windows(attrs, data, attrs["pool_size"], -np.inf).max((-2, -1))


def avg_pool2d(attrs: Mapping[str, Any], data: Array) -> Array:
    inside = np.ones_like(data)
    if attrs["count_include_pad"]:
        (top, left, bottom, right) = attrs["padding"]
        padded = [(0, 0), (0, 0), (top, bottom), (left, right)]
        inside, data = np.pad(inside, padded, constant_values=1), np.pad(data, padded)
        attrs = {**attrs, "padding": [0, 0, 0, 0]}
    total, count = (windows(attrs, each, attrs["pool_size"], 0) for each in (data, inside))
    return total.sum((-2, -1)) / count.sum((-2, -1))


def matmul(attrs: Mapping[str, Any], a: Array, b: Array) -> Array:
    left = a.swapaxes(-1, -2) if attrs["transpose_a"] else a
    right = b.swapaxes(-1, -2) if attrs["transpose_b"] else b
    return wide(left) @ wide(right)


def along(axis: int, vector: Array, data: Array) -> Array:
    """Reshapes a vector so that it is broadcast along an axis of `data`."""
    return vector.reshape([-1 if i == axis % data.ndim else 1 for i in range(data.ndim)])


def batch_norm(attrs: Mapping[str, Any], data: Array, *parameters: Array) -> Array:
    gamma, beta, mean, variance = (along(attrs["axis"], wide(p), data) for p in parameters)
    return (data - mean) / np.sqrt(variance + variance.dtype.type(attrs["epsilon"])) * gamma + beta


def layer_norm(attrs: Mapping[str, Any], data: Array, gamma: Array, beta: Array) -> Array:
    data, axes = wide(data), tuple(range(attrs["axis"] % data.ndim, data.ndim))
    centred = data - data.mean(axes, keepdims=True)
    variance = (centred * centred).mean(axes, keepdims=True)
    return centred / np.sqrt(variance + data.dtype.type(attrs["epsilon"])) * gamma + beta


def softmax(attrs: Mapping[str, Any], data: Array) -> Array:
    data = wide(data)
    powers = np.exp(data - data.max(attrs["axis"], keepdims=True, initial=-np.inf))
    return powers / powers.sum(attrs["axis"], keepdims=True)


def reduced(function: Callable[..., Any]) -> Kernel:
    """Returns the kernel of one of numpy's reductions."""
    return lambda attrs, data: function(
        wide(data), axis=tuple(attrs["axis"]), keepdims=attrs["keepdims"]
    )


def relu(attrs: Mapping[str, Any], data: Array) -> Array:
    return np.maximum(data, data.dtype.type(0))


def clip(attrs: Mapping[str, Any], data: Array) -> Array:
    return np.clip(data, data.dtype.type(attrs["a_min"]), data.dtype.type(attrs["a_max"]))


KERNELS: Mapping[str, Kernel] = {
    "add": lambda attrs, a, b: a + b,
    "subtract": lambda attrs, a, b: a - b,
    "multiply": lambda attrs, a, b: a * b,
    "divide": lambda attrs, a, b: a / b,
    "maximum": lambda attrs, a, b: np.maximum(a, b),
    "equal": lambda attrs, a, b: a == b,
    "exp": lambda attrs, a: np.exp(wide(a)),
    "nn.relu": relu,
    "nn.leaky_relu": lambda attrs, a: np.where(a < 0, a.dtype.type(attrs["alpha"]) * a, a),
    "clip": clip,
    "where": lambda attrs, mask, x, y: np.where(mask, x, y),
    "nn.conv2d": conv2d,
    "nn.max_pool2d": max_pool2d,
    "nn.avg_pool2d": avg_pool2d,
    "nn.dense": lambda attrs, data, weight: wide(data) @ wide(weight).T,
    "nn.matmul": matmul,
    "nn.bias_add": lambda attrs, data, bias: data + along(attrs["axis"], bias, data),
    "nn.batch_norm": batch_norm,
    "nn.layer_norm": layer_norm,
    "nn.softmax": softmax,
    "sum": reduced(np.sum),
    "mean": reduced(np.mean),
    "max": reduced(np.max),
    "transpose": lambda attrs, data: data.transpose(attrs["axes"]),
    "concatenate": lambda attrs, *data: np.concatenate(data, attrs["axis"]),
    "nn.pad": lambda attrs, data: np.pad(
        data, np.reshape(attrs["pad_width"], (-1, 2)), constant_values=attrs["pad_value"]
    ),
    "take": lambda attrs, data, indices: np.take(data, indices, attrs["axis"]),
    "cumsum": lambda attrs, data: np.cumsum(wide(data), attrs["axis"]),
    "nn.lstm": lstm,
    "nn.gru": gru,
    "topk": topk,
    "scatter_elements": scatter_elements,
    "vision.roi_pool": roi_pool,
    "conv2d_relu": lambda attrs, *operands: relu(attrs, conv2d(attrs, *operands)),
    "conv2d_bias_relu": lambda attrs, *operands: relu(attrs, conv2d(attrs, *operands)),
    "sum_relu": lambda attrs, a, b: relu(attrs, a + b),
}
"""Kernels by Relay name, or by the name of a composite without the backend's prefix."""


def _anything(op: Any) -> str | None:
    return None


def _pads_constant(op: Any) -> str | None:
    if op.pad_mode.data != "constant" or min(op.pad_width.get_values()) < 0:
        return "only constants are added"
    return None


def _plain_scan(op: Any) -> str | None:
    return "only plain sums" if op.exclusive.value.data or op.reverse.value.data else None


def _has_elements(op: Any) -> str | None:
    sizes = [size for value in op.operands for size in value.type.get_shape()]
    return "an empty tensor" if 0 in sizes else None


def _one_result(op: Any) -> str | None:
    used = any(result.first_use is not None for result in op.results[1:])
    return "only its first result is computed" if used else None


RULES: Mapping[str, Rule] = {
    **{
        name: _anything
        for name in KERNELS
        if name not in ("conv2d_relu", "conv2d_bias_relu", "sum_relu")
    },
    "nn.pad": _pads_constant,
    "cumsum": _plain_scan,
    "nn.softmax": _has_elements,
    "nn.batch_norm": _one_result,
}


@dataclass(frozen=True)
class Graph:
    """Region, with the kernels for its ops."""

    nodes: Sequence[Mapping[str, Any]]
    heads: Sequence[Sequence[int]]
    constants: Mapping[str, Array]
    kernels: Mapping[str, Kernel]

    def constant(self, node: Mapping[str, Any]) -> Array:
        return self.constants[node["name"]]

    def kernel(self, node: Mapping[str, Any], operands: Sequence[Array]) -> Sequence[Array]:
        """Returns the results of a node."""
        name = node["name"].rpartition(".")[2] if "." in node["name"] else node["name"]
        known = self.kernels.get(node["name"]) or self.kernels[name]
        found = known(node["attrs"], *operands)
        first, *others = found if isinstance(found, tuple) else (found,)
        return [np.asarray(first).astype(node["attrs"]["dtype"]), *others]


Run: TypeAlias = Callable[[Graph, list[Array]], Sequence[Array]]
"""Function that computes the outputs of a region."""


def run(graph: Graph, inputs: list[Array]) -> Sequence[Array]:
    """Runs the nodes one after the other."""
    given, values = iter(inputs), list[Sequence[Array]]()
    for node in graph.nodes:
        if node["op"] == "input":
            values.append([next(given)])
        elif node["op"] == "const":
            values.append([graph.constant(node)])
        else:
            values.append(graph.kernel(node, [values[at][which] for at, which in node["inputs"]]))
    return [values[at][which] for at, which in graph.heads]


_PROGRAMS: dict[str, tuple[Graph, Run]] = {}
_NUMBERS = itertools.count()


class NumpyModule(RegionModule):
    """Module of a program of this process, by its number."""

    def __init__(self, key: str):
        self._key = key

    @classmethod
    def load(cls, data: bytes) -> Self:
        return cls(data.decode())

    def save(self) -> bytes:
        return self._key.encode()

    def get_function(self, symbol: str) -> RegionFunction:
        graph, how = _PROGRAMS[self._key]

        def function(inputs: list[Array], outputs: list[Array]) -> None:
            with np.errstate(all="ignore"):
                results = how(graph, inputs)
            for output, result in zip(outputs, results, strict=True):
                np.copyto(output, result)

        return function


def numpy_backend(
    backend_name: str,
    *,
    kernels: Mapping[str, Kernel] | None = None,
    how: Run = run,
    rules: Mapping[str, Rule] = RULES,
) -> type[Backend]:
    """Returns a backend class; without replacements it is right."""
    table = {**KERNELS, **(kernels or {})}

    class NumpyBackend(Backend):
        name: ClassVar[str] = backend_name
        is_cacheable: ClassVar[bool] = False

        def op_rules(self) -> Mapping[str, Rule]:
            return rules

        def profitability(self, element_type: str) -> Profitability:
            return Profitability(frozenset(rules))  # it computes with halves

        def patterns(self) -> Sequence[CompositePattern]:
            conv = is_op("nn.conv2d")(wildcard(), wildcard())
            biased = is_op("nn.bias_add")(conv, wildcard()).named("biased")
            summed = is_op("add")(wildcard(), wildcard())
            return [
                CompositePattern(f"{self.name}.conv2d_bias_relu", is_op("nn.relu")(biased), _axis),
                CompositePattern(f"{self.name}.conv2d_relu", is_op("nn.relu")(conv)),
                CompositePattern(f"{self.name}.sum_relu", is_op("nn.relu")(summed)),
            ]

        def codegen(self, region: FuncOp, context: CodegenContext) -> Blob:
            graph, constants = json_graph(region)
            key = str(next(_NUMBERS))
            _PROGRAMS[key] = Graph(graph["nodes"], graph["heads"], constants, table), how
            return Blob.of(NumpyModule(key))

    NumpyBackend.__qualname__ = f"NumpyBackend_{backend_name}"
    return NumpyBackend


def _axis(match: Any) -> str | None:
    axis = match.op("biased").positive_axis
    return None if axis == 1 else f"a bias along axis {axis}"
