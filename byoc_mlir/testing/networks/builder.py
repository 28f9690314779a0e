"""A small builder of ONNX graphs with seeded random weights.

Weights are scaled (He et al., 2015) so that activations keep a second moment near one at every
depth: an output that is saturated or constant would hide mistakes.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

RELU_GAIN = math.sqrt(2.0)
"""Gain of a layer whose input went through a ReLU, which halves the second moment."""

Array = npt.NDArray[Any]


class GraphBuilder:
    """Builder of one model; values are their ONNX names.

    The builder knows the channel count of the values that layers read (axis 1 of images, the last
    axis elsewhere), so that a layer only names the size of its result.
    """

    def __init__(self, name: str, *, seed: int, opset: int = 17):
        self.name = name
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self.channels: dict[str, int] = {}
        self._scope: list[str] = []
        self._names: dict[str, int] = {}
        self._nodes: list[NodeProto] = []
        self._initializers: list[TensorProto] = []
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []

    # graph

    def input(
        self,
        name: str,
        shape: Sequence[int | str],
        dtype: int = TensorProto.FLOAT,
        channel_axis: int = 1,
    ) -> str:
        """Adds a graph input of static `shape`; dimensions that are names are symbolic."""
        self._inputs.append(helper.make_tensor_value_info(name, dtype, shape))
        channels = shape[channel_axis] if len(shape) > channel_axis else ""
        if isinstance(channels, int):
            self.channels[name] = channels
        return name

    def output(
        self,
        value: str,
        name: str,
        shape: Sequence[int | str | None] | None,
        dtype: int = TensorProto.FLOAT,
    ) -> None:
        """Declares `value` as the graph output `name`; `None` is a size or a rank known only at run
        time.
        """
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"/{name}"))
        self._outputs.append(helper.make_tensor_value_info(name, dtype, shape))

    def declare(
        self, value: str, shape: Sequence[int | str | None], dtype: int = TensorProto.FLOAT
    ) -> None:
        """Declares `value` as a graph output under its own name."""
        self._outputs.append(helper.make_tensor_value_info(value, dtype, shape))

    def build(self) -> ModelProto:
        """Returns the finished model."""
        graph = helper.make_graph(
            self._nodes, self.name, self._inputs, self._outputs, self._initializers
        )
        domains = sorted({node.domain for node in self._nodes} - {""})
        opsets = [
            helper.make_opsetid("", self.opset),
            *(helper.make_opsetid(d, 1) for d in domains),
        ]
        return helper.make_model(
            graph, opset_imports=opsets, ir_version=8, producer_name="byoc_mlir.testing"
        )

    @contextmanager
    def scope(self, name: str) -> Generator[None]:
        """Adds a prefix to the names of the nodes built inside, `/layer1.0/Conv`."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    def op(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Adds one node with one output, whose channels are taken from the first input."""
        (output,) = self.ops(op_type, *inputs, outputs=1, **attributes)
        return output

    def ops(
        self, op_type: str, *inputs: str, outputs: int | Sequence[str], **attributes: Any
    ) -> list[str]:
        """Adds one node with `outputs` outputs, or with the named ones; an empty name omits an
        output.

        Names are prefixed with the node's, except names with a dot.
        """
        name = self._unique("/" + "/".join([*self._scope, op_type]))
        if isinstance(outputs, int):
            outputs = [f"output_{index}" for index in range(outputs)]
        values = [each if "." in each or not each else f"{name}_{each}" for each in outputs]
        self._nodes.append(helper.make_node(op_type, inputs, values, name=name, **attributes))
        if inputs and inputs[0] in self.channels:
            self.channels |= dict.fromkeys(values, self.channels[inputs[0]])
        return values

    # constants

    def constant(self, value: npt.ArrayLike, name: str = "constant") -> str:
        """Adds an initializer."""
        unique = self._unique(".".join([*self._scope, name]))
        self._initializers.append(numpy_helper.from_array(np.asarray(value), unique))
        return unique

    def ints(self, *values: int) -> str:
        """Adds a 1-D int64 initializer: a shape, axes, split sizes."""
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        """Adds a rank-0 float initializer."""
        return self.constant(np.array(value, np.float32))

    def normal(self, shape: Sequence[int], deviation: float, name: str = "weight") -> str:
        """Adds a float initializer drawn from a normal distribution of mean zero."""
        drawn = self.rng.standard_normal(tuple(shape), dtype=np.float32)
        return self.constant(drawn * np.float32(deviation), name)

    def uniform(self, shape: Sequence[int], low: float, high: float, name: str) -> str:
        """Adds a float initializer drawn from a uniform distribution."""
        drawn = self.rng.random(tuple(shape), dtype=np.float32)
        return self.constant(drawn * np.float32(high - low) + np.float32(low), name)

    # layers on [N, C, H, W]

    def conv(
        self,
        x: str,
        channels: int,
        kernel: int | tuple[int, int],
        *,
        stride: int = 1,
        padding: int | tuple[int, int] | None = None,
        groups: int = 1,
        bias: bool = True,
        gain: float = RELU_GAIN,
    ) -> str:
        """Adds `Conv`: `[N, C, H, W]` to `[N, channels, H', W']`; padding defaults to half of the
        kernel.
        """
        height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
        if padding is None:
            padding = (height // 2, width // 2)
        top, left = (padding, padding) if isinstance(padding, int) else padding
        fan_in = self.channels[x] // groups * height * width
        shape = (channels, self.channels[x] // groups, height, width)
        weights = [self.normal(shape, gain / math.sqrt(fan_in), "weight")]
        if bias:
            weights.append(self.normal((channels,), 0.1, "bias"))
        y = self.op(
            "Conv",
            x,
            *weights,
            kernel_shape=[height, width],
            strides=[stride, stride],
            pads=[top, left, top, left],
            dilations=[1, 1],
            group=groups,
        )
        self.channels[y] = channels
        return y

    def conv_transpose(self, x: str, channels: int, kernel: int, stride: int) -> str:
        """Adds `ConvTranspose`: `[N, C, H, W]` to `[N, channels, H*stride, W*stride]` for `kernel
        == stride`.
        """
        fan_in = self.channels[x] * kernel * kernel / stride**2
        weight = self.normal(
            (self.channels[x], channels, kernel, kernel), RELU_GAIN / math.sqrt(fan_in)
        )
        bias = self.normal((channels,), 0.1, "bias")
        y = self.op(
            "ConvTranspose",
            x,
            weight,
            bias,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[0, 0, 0, 0],
            dilations=[1, 1],
            group=1,
        )
        self.channels[y] = channels
        return y

    def batch_norm(self, x: str, *, gain: float = 1.0) -> str:
        """Adds inference batch norm; a small `gain` keeps a residual branch from dominating."""
        shape = (self.channels[x],)
        return self.op(
            "BatchNormalization",
            x,
            self.uniform(shape, 0.7 * gain, 1.2 * gain, "scale"),
            self.normal(shape, 0.2 * gain, "bias"),
            self.normal(shape, 0.2, "running_mean"),
            self.uniform(shape, 0.8, 1.3, "running_var"),
            epsilon=1e-5,
            momentum=0.9,
        )

    def relu(self, x: str) -> str:
        """Adds `Relu`: `max(x, 0)`."""
        return self.op("Relu", x)

    def relu6(self, x: str) -> str:
        """Adds `Clip` to [0, 6], with its bounds as inputs."""
        return self.op("Clip", x, self.scalar(0.0), self.scalar(6.0))

    def swish(self, x: str) -> str:
        """Adds `x * sigmoid(x)` in two nodes."""
        return self.op("Mul", x, self.op("Sigmoid", x))

    def add(self, a: str, b: str) -> str:
        """Adds `a + b`."""
        return self.op("Add", a, b)

    def max_pool(
        self, x: str, kernel: int, stride: int, *, padding: int = 0, ceil: bool = False
    ) -> str:
        """Adds max pooling with a square window."""
        return self.op(
            "MaxPool",
            x,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[padding] * 4,
            ceil_mode=int(ceil),
        )

    def average_pool(self, x: str, kernel: int, stride: int, *, padding: int = 0) -> str:
        """Adds average pooling with a square window."""
        return self.op(
            "AveragePool",
            x,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[padding] * 4,
            count_include_pad=1,
        )

    def concat(self, *values: str) -> str:
        """Adds a concatenation along the channels of images."""
        y = self.op("Concat", *values, axis=1)
        self.channels[y] = sum(self.channels[value] for value in values)
        return y

    def classifier(self, x: str, classes: int, gain: float = 2.0) -> str:
        """Adds global average pool, flatten and dense: `[N, C, H, W]` to `[N, classes]`."""
        pooled = self.op("GlobalAveragePool", x)
        return self.gemm(self.op("Flatten", pooled, axis=1), classes, gain=gain)

    # layers on [..., C]

    def gemm(self, x: str, features: int, *, gain: float = RELU_GAIN) -> str:
        """Adds `Gemm` with a transposed weight: `[N, C]` to `[N, features]`."""
        width = self.channels[x]
        weight = self.normal((features, width), gain / math.sqrt(width))
        bias = self.normal((features,), 0.1, "bias")
        y = self.op("Gemm", x, weight, bias, alpha=1.0, beta=1.0, transB=1)
        self.channels[y] = features
        return y

    def linear(self, x: str, features: int, *, gain: float = 1.0, bias: bool = True) -> str:
        """Adds `MatMul` and `Add`: `[..., C]` to `[..., features]`."""
        width = self.channels[x]
        y = self.op("MatMul", x, self.normal((width, features), gain / math.sqrt(width)))
        self.channels[y] = features
        if not bias:
            return y
        y = self.op("Add", self.normal((features,), 0.1, "bias"), y)
        self.channels[y] = features
        return y

    def layer_norm(self, x: str) -> str:
        """Adds `LayerNormalization` of the last axis with random parameters."""
        scale, bias = self.norm_parameters(self.channels[x])
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)

    def norm_parameters(self, width: int) -> tuple[str, str]:
        """Adds the scale and the bias of a normalisation."""
        scale = self.uniform((width,), 0.7, 1.2, "scale")
        return scale, self.normal((width,), 0.1, "bias")

    def bidirectional_lstm(self, x: str, hidden: int, *, bias: bool = True) -> str:
        """Adds a bidirectional LSTM: `[T, N, C]` to `[T, N, 2*hidden]`."""
        width = self.channels[x]
        weights = [
            self.normal((2, 4 * hidden, width), 1.5 / math.sqrt(width), "W"),
            self.normal((2, 4 * hidden, hidden), 1.0 / math.sqrt(hidden), "R"),
            *([self.normal((2, 8 * hidden), 0.2, "B")] if bias else []),
        ]
        y, *_ = self.ops(
            "LSTM", x, *weights, outputs=3, hidden_size=hidden, direction="bidirectional"
        )
        return self.reshape(self.transpose(y, 0, 2, 1, 3), 0, 0, 2 * hidden)

    def reshape(self, x: str, *shape: int) -> str:
        """Adds `Reshape` to a constant shape; the last dimension becomes the channels."""
        y = self.op("Reshape", x, self.ints(*shape))
        self.channels[y] = shape[-1]
        return y

    def transpose(self, x: str, *permutation: int) -> str:
        """Adds `Transpose`; set `channels` afterwards if a layer reads the result."""
        return self.op("Transpose", x, perm=permutation)

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name
