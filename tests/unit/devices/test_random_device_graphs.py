"""Random graphs over two devices, three backends on them, `dnnl` and the host, compared with ONNX
Runtime.

`BYOC_DEVICE_GRAPHS=2000` sets the number of graphs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from device_models import nothing_left
from fakenpu.control import Control
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

GRAPHS = int(os.environ.get("BYOC_DEVICE_GRAPHS", "25"))
_NO_CHECKS = (HealthCheck.too_slow, HealthCheck.data_too_large)
TARGETS = st.permutations(["fakenpu", "fakenpu_eltwise", "fakenpu2", "dnnl"]).flatmap(
    lambda names: st.integers(1, 4).map(lambda count: names[:count])
)
"""Backends in order of preference; the regions of `dnnl` have workspace in the host's arena."""
ROWS, WIDTH = 4, 6
IMAGE = (2, 3, 4, 5)
"""Shapes of all values: matrices, and images."""

OF_ONE = ("Relu", "Tanh", "Abs", "Neg", "Sigmoid", "Exp")
OF_TWO = ("Add", "Mul", "Sub", "Max")


class _Graph:
    """Builder of one graph; all matrices have one shape, and all images."""

    def __init__(self, draw: st.DrawFn):
        self._draw = draw
        self.builder = GraphBuilder("random", seed=draw(st.integers(0, 3)))
        inputs = draw(st.integers(1, 2))
        self._matrices = [self.builder.input(f"x{i}", [ROWS, WIDTH]) for i in range(inputs)]
        self._images = [self.builder.input("image", IMAGE)]
        self._weights: list[str] = []

    def grow(self) -> None:
        """Adds a node."""
        kind = self._draw(st.sampled_from([*OF_ONE, *OF_TWO, "dense", "conv", "reshape", "host"]))
        values = self._draw(st.sampled_from([self._matrices, self._images]))
        value = self._draw(st.sampled_from(values))
        if kind == "dense":
            values, made = self._matrices, self._dense(self._draw(st.sampled_from(self._matrices)))
        elif kind == "conv":
            values, made = self._images, self._conv(self._draw(st.sampled_from(self._images)))
        elif kind == "reshape":
            made = self._reshaped(value, IMAGE if values is self._images else (ROWS, WIDTH))
        elif kind == "host":
            made = self.builder.op("Softmax", value, axis=-1)
        elif kind in OF_TWO:
            made = self.builder.op(kind, value, self._draw(st.sampled_from(values)))
        else:
            made = self.builder.op(kind, self.builder.op("Tanh", value) if kind == "Exp" else value)
        values.append(self._small(made))

    def _small(self, value: str) -> str:
        """Keeps values near one where products would let them grow."""
        return self.builder.op("Tanh", value) if self._draw(st.booleans()) else value

    def _dense(self, value: str) -> str:
        if not self._weights or self._draw(st.booleans()):
            self._weights.append(self.builder.normal((WIDTH, WIDTH), 0.4))
        bias = [self.builder.normal((WIDTH,), 0.1)] if self._draw(st.booleans()) else []
        weight = self._draw(st.sampled_from(self._weights))
        return self.builder.op("Gemm", value, weight, *bias, transB=1)

    def _conv(self, value: str) -> str:
        self.builder.channels[value] = IMAGE[1]
        return self.builder.conv(value, IMAGE[1], self._draw(st.sampled_from([1, 3])))

    def _reshaped(self, value: str, shape: Sequence[int]) -> str:
        """Adds a reshape to a vector of all elements, an op there or none, and one back."""
        flat = self.builder.reshape(value, 1, -1)
        if self._draw(st.booleans()):
            flat = self.builder.relu(flat)
        return self.builder.reshape(flat, *shape)

    def build(self) -> ModelProto:
        """Declares some values as outputs, the last ones among them."""
        for name, values, shape in (
            ("matrix", self._matrices, (ROWS, WIDTH)),
            ("image", self._images, IMAGE),
        ):
            chosen = {values[-1], *self._draw(st.lists(st.sampled_from(values), max_size=2))}
            for number, value in enumerate(sorted(chosen)):
                self.builder.output(value, f"{name}_out{number}", shape)
        return self.builder.build()


@st.composite
def graphs(draw: st.DrawFn) -> ModelProto:
    """Draws a model of up to twelve nodes."""
    graph = _Graph(draw)
    for _ in range(draw(st.integers(1, 12))):
        graph.grow()
    return graph.build()


@settings(
    max_examples=GRAPHS,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
@given(model=graphs(), targets=TARGETS, is_lazy=st.booleans())
def test_random_graphs(model: ModelProto, targets: Sequence[str], is_lazy: bool) -> None:
    with nothing_left(), byoc_mlir.compile(model, targets=targets, fallback="allow") as executable:
        for seed in range(2):
            inputs = random_inputs(model, seed=seed)
            wanted = run_onnxruntime(model, inputs)
            if is_lazy:
                with Control("fakenpu").lazy(), Control("fakenpu2").lazy():
                    found = executable.run(inputs)
            else:
                found = executable.run(inputs)
            assert all(np.isfinite(array).all() for array in wanted.values())
            assert_agrees(found, wanted, 1e-4)
