"""Small quantised ONNX models, their results by definition, and checks in other processes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from helpers.models import model_of
from onnx import ModelProto, NodeProto, helper

import byoc_mlir
from byoc_mlir.onednn.engine import engine
from byoc_mlir.runtime.report import Report

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


def draw(dtype: Any, *shape: int, seed: int = 0) -> Array:
    """Returns random 8-bit values, with both ends of the range among them."""
    info = np.iinfo(dtype)
    array = np.random.default_rng(seed).integers(info.min, info.max + 1, shape, dtype)
    array.reshape(-1)[:2] = info.min, info.max
    return array


@dataclass(frozen=True)
class Convolution:
    """`QLinearConv` whose result is seldom clipped."""

    data: Array
    weights: Array
    result_type: Any = np.uint8
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int] = (0, 0)
    groups: int = 1
    data_zero_point: int = 5
    zero_point: int = 3
    seed: int = field(default=0)

    @property
    def scales(self) -> Array:
        """Returns the scales of the weights, one for each output."""
        generator = np.random.default_rng(self.seed)
        return generator.uniform(0.01, 0.02, len(self.weights)).astype(np.float32)

    @property
    def bias(self) -> Array:
        generator = np.random.default_rng(self.seed + 1)
        return generator.integers(-20000, 20000, len(self.weights)).astype(np.int32)

    @property
    def result_scale(self) -> Array:
        """Returns a scale by which sums of random values have about the range of 8 bits."""
        steps = math.prod(self.weights.shape[1:])
        return np.array(0.015 * 0.5 * 60 * np.abs(self.weights).max() * steps**0.5 / 64, np.float32)

    def constants(self) -> dict[str, Array]:
        """Returns the node's inputs after the data, by name."""
        weights = self.weights
        return {
            "data_scale": np.array(0.5, np.float32),
            "data_zero": np.array(self.data_zero_point, self.data.dtype),
            "weights": weights,
            "scales": self.scales,
            "weight_zeros": np.zeros(len(weights), weights.dtype),
            "result_scale": self.result_scale,
            "result_zero": np.array(self.zero_point, self.result_type),
            "bias": self.bias,
        }

    def node(self, data: str, result: str, prefix: str = "") -> NodeProto:
        """Returns the node; the names of its constants have a prefix."""
        inputs = [data, *(prefix + name for name in self.constants())]
        pads = [*self.pads, *self.pads]
        attributes = {"strides": list(self.strides), "pads": pads, "group": self.groups}
        return helper.make_node("QLinearConv", inputs, [result], name=result, **attributes)

    def expected(self, data: Array | None = None) -> Array:
        """Returns the result, with sums in `i64`."""
        data = (self.data if data is None else data).astype(np.int64) - self.data_zero_point
        (top, left), groups = self.pads, self.groups
        padded = np.pad(data, ((0, 0), (0, 0), (top, top), (left, left)))
        height, width = self.weights.shape[2:]
        sizes = [
            (size - window) // step + 1
            for size, window, step in zip(
                padded.shape[2:], (height, width), self.strides, strict=True
            )
        ]
        weights = self.weights.astype(np.int64)
        total = np.zeros((len(data), len(weights), *sizes), np.int64)
        parts = total.reshape(len(data), groups, -1, *sizes)
        images = padded.reshape(len(data), groups, -1, *padded.shape[2:])
        kernels = weights.reshape(groups, -1, *weights.shape[1:])
        for y in range(height):
            for x in range(width):
                lines = slice(y, None, self.strides[0])
                pixels = slice(x, None, self.strides[1])
                read = images[:, :, :, lines, pixels][..., : sizes[0], : sizes[1]]
                parts += np.einsum("ngihw,goi->ngohw", read, kernels[..., y, x])
        total += self.bias[:, None, None]
        ratio = np.float32(0.5) * self.scales / self.result_scale
        scaled = np.rint(total.astype(np.float32) * ratio[:, None, None]) + self.zero_point
        info = np.iinfo(self.result_type)
        return scaled.clip(info.min, info.max).astype(self.result_type)


def run(
    model: ModelProto, inputs: Mapping[str, Array], target: str = "dnnl"
) -> tuple[Array, Report]:
    """Returns the one result by oneDNN, and the report."""
    compiled = byoc_mlir.compile(model, targets=(target,), prune="off", threads=1)
    (found,) = compiled.run(dict(inputs)).values()
    return found, compiled.report()


def assert_within_a_step(found: Array, wanted: Array) -> None:
    """Asserts that 99.9 % of the elements differ by at most one quantisation step, and all by at
    most two.
    """
    assert found.dtype == wanted.dtype
    difference = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
    assert difference.max(initial=0) <= 2
    assert (difference > 1).sum() <= 1e-3 * difference.size


def check_at_level() -> None:
    """Checks the largest data and weights, which saturate 16 bits, and weights that never do."""
    data = np.full((1, 16, 6, 6), 255, np.uint8)
    data[..., ::2] = draw(np.uint8, 1, 16, 6, 3)
    depthwise = np.full((16, 1, 3, 3), 127, np.int8)
    _check(Convolution(data, depthwise, data_zero_point=0, groups=16), is_offloaded=True)
    depthwise = draw(np.int8, 16, 1, 3, 3)  # odd ones cannot be halved
    it = Convolution(data.view(np.int8), depthwise, data_zero_point=-128, groups=16)
    _check(it, is_offloaded=engine().has_vnni)
    for largest in (127, 64):
        weights = np.full((16, 16, 3, 3), largest, np.int8)
        weights[8:] = draw(np.int8, 8, 16, 3, 3).clip(-largest, largest)
        it = Convolution(data, weights, data_zero_point=0)
        _check(it, is_offloaded=True)


def _check(it: Convolution, *, is_offloaded: bool) -> None:
    model = model_of([it.node("x", "y")], {"x": it.data}, it.constants(), ["y"])
    found, report = run(model, {"x": it.data})
    assert_within_a_step(found, it.expected())
    assert any(name.startswith("dnnl.qnn") for name in report.composites) == is_offloaded, report
