"""Single quantised ops in all combinations of types, granularity, zero points and values.

Expected results follow from the dequantised values, in `f64`, without another engine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from helpers.models import model_of, node_model
from onnx import ModelProto, NodeProto, helper
from onnx.reference import ReferenceEvaluator

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

MICROSOFT = "com.microsoft"
U8, I8, I32, F32 = (np.dtype(name) for name in ("uint8", "int8", "int32", "float32"))
BYTES = (U8, I8)
ZEROS = ("none", "middle", "end")
VALUES = ("random", "saturating")


@dataclass(frozen=True)
class Quantised:
    """Integers with their scale and zero point, one of each or one for each index of an axis."""

    integers: Array
    scale: Array
    zero: Array
    axis: int = 0

    @property
    def numbers(self) -> Array:
        """Returns the dequantised values, in `f64`."""
        along = [1] * self.integers.ndim
        along[self.axis] = -1
        scale, zero = (one.astype(np.float64).reshape(along) for one in (self.scale, self.zero))
        return (self.integers - zero) * scale

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        """Returns integers, scale and zero point, in ONNX's order."""
        return self.integers, self.scale, self.zero


@dataclass(frozen=True)
class Case:
    """Node or a few, with their inputs and the expected result of the last one."""

    nodes: Sequence[NodeProto]
    inputs: Mapping[str, Array]
    constants: Mapping[str, Array]
    expected: Array
    step: float = 1.0
    """Step of the result: 1 for integers, else the step of the quantised values behind the result.
    """


def zero_point(dtype: np.dtype[Any], kind: str) -> Array:
    """Returns a zero point: 0, one within the range, or the largest."""
    info = np.iinfo(dtype)
    middle = (info.min + info.max) // 2 + 4
    return np.array({"none": 0, "middle": middle, "end": info.max}[kind], dtype)


def integers(dtype: np.dtype[Any], values: str, seed: int, *shape: int) -> Array:
    """Returns random integers with both ends of the range, or mostly the largest one."""
    info, rng = np.iinfo(dtype), np.random.default_rng(seed)
    drawn = rng.integers(info.min, info.max + 1, shape, dtype)
    drawn.reshape(-1)[:2] = info.min, info.max
    if values == "random":
        return drawn
    return np.where(rng.random(shape) < 0.06, drawn, np.array(info.max, dtype))


def data_of(dtype: np.dtype[Any], values: str, kind: str, *shape: int, seed: int = 1) -> Quantised:
    """Returns quantised data that a node gets at run time."""
    scale = np.array(0.02 + 0.007 * seed, F32)
    return Quantised(integers(dtype, values, seed, *shape), scale, zero_point(dtype, kind))


def weights_of(
    dtype: np.dtype[Any], values: str, kind: str, per_channel: bool, axis: int, *shape: int
) -> Quantised:
    """Returns constant quantised weights; if they saturate, every third channel is at the other
    end.

    Args:
        kind: the zero points of the data; zero points of weights are 0 unless `kind` is `end`.
    """
    drawn = np.moveaxis(integers(dtype, values, 2, *shape).copy(), axis, 0)
    if values == "saturating":
        drawn[::3] = np.iinfo(dtype).min
    count = shape[axis]
    scale, zero = np.array(0.013, F32), zero_point(dtype, "middle" if kind == "end" else "none")
    if per_channel:
        scale = np.linspace(0.01, 0.02, count).astype(F32)
        zero = np.full(count, zero)
        zero[::2] -= np.array(kind == "end", dtype)
    return Quantised(np.ascontiguousarray(np.moveaxis(drawn, 0, axis)), scale, zero, axis)


def bias_of(data: Quantised, weights: Quantised, count: int) -> Quantised:
    """Returns a bias with the scale of the MACs."""
    scale = (data.scale * weights.scale).astype(F32)
    drawn = np.random.default_rng(3).integers(-9000, 9000, count).astype(I32)
    return Quantised(drawn, scale, np.zeros_like(scale, I32))


def computed(op_type: str, operands: Sequence[Array], **attributes: Any) -> Array:
    """Computes an op of floats in `f64`, by ONNX's reference evaluator."""
    model, feeds = node_model(op_type, operands, opset=20, **attributes)
    (found,) = ReferenceEvaluator(model).run(None, feeds)
    return np.asarray(found)


def result_of(numbers: Array, dtype: np.dtype[Any], *, is_cut: bool = False) -> Quantised:
    """Quantises values to a range that they fill, or that is too small for them."""
    info = np.iinfo(dtype)
    low, high = min(numbers.min(), 0), max(numbers.max(), 0)
    scale = np.array((high - low) / (150 if is_cut else 255) or 1, F32)
    zero = np.clip(np.rint(info.min - low / scale), info.min, info.max).astype(dtype)
    whole = np.rint(numbers / scale.astype(np.float64)) + zero
    return Quantised(whole.clip(info.min, info.max).astype(dtype), scale, zero)


_LINEAR = {
    "Conv": ("QLinearConv", ""),
    "MatMul": ("QLinearMatMul", ""),
    "Gemm": ("QGemm", MICROSOFT),
    "Add": ("QLinearAdd", MICROSOFT),
    "Mul": ("QLinearMul", MICROSOFT),
    "Concat": ("QLinearConcat", MICROSOFT),
    "GlobalAveragePool": ("QLinearGlobalAveragePool", MICROSOFT),
    "AveragePool": ("QLinearAveragePool", MICROSOFT),
    "Sigmoid": ("QLinearSigmoid", MICROSOFT),
    "LeakyRelu": ("QLinearLeakyRelu", MICROSOFT),
    "Softmax": ("QLinearSoftmax", MICROSOFT),
}
"""Integer ops for float ops."""


@dataclass
class Writer:
    """Collector of a case's nodes, inputs and constants, whose names have a prefix."""

    prefix: str
    given: int = 1
    """Number of operands that are inputs of the model."""
    nodes: list[NodeProto] = field(default_factory=list[NodeProto])
    inputs: dict[str, Array] = field(default_factory=dict[str, Array])
    constants: dict[str, Array] = field(default_factory=dict[str, Array])

    def constant(self, array: Array) -> str:
        """Adds a constant and returns its name."""
        name = f"{self.prefix}_c{len(self.constants)}"
        self.constants[name] = array
        return name

    def operand(self, operand: Quantised, place: int) -> tuple[str, str, str]:
        """Adds an operand and returns the names of its parts."""
        name = f"{self.prefix}_x{place}"
        (self.inputs if place < self.given else self.constants)[name] = operand.integers
        return name, self.constant(operand.scale), self.constant(operand.zero)

    def node(self, op_type: str, inputs: Sequence[str], domain: str = "", **attributes: Any) -> str:
        """Adds a node and returns the name of its output."""
        output = f"{self.prefix}_n{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op_type, inputs, [output], output, domain=domain, **attributes)
        )
        return output

    def case(self, expected: Array, step: float = 1.0) -> Case:
        """Returns everything added as a case."""
        return Case(self.nodes, self.inputs, self.constants, expected, step)


def dequantised(
    prefix: str,
    op_type: str,
    operands: Sequence[Quantised],
    dtype: np.dtype[Any],
    *,
    given: int = 1,
    relu: bool = False,
    **attributes: Any,
) -> Case:
    """Returns a case with an op of floats between `DequantizeLinear` and `QuantizeLinear`."""
    writer = Writer(prefix, given)
    names = [
        writer.node("DequantizeLinear", writer.operand(operand, place), axis=operand.axis)
        for place, operand in enumerate(operands)
    ]
    output = writer.node(op_type, names, **attributes)
    numbers = computed(op_type, [one.numbers for one in operands], **attributes)
    if relu:
        output = writer.node("Relu", [output])
        numbers = np.maximum(numbers, 0)
    result = result_of(numbers, dtype, is_cut=relu)
    parameters = [writer.constant(one) for one in (result.scale, result.zero)]
    writer.node("QuantizeLinear", [output, *parameters])
    return writer.case(result.integers)


def of_integers(
    prefix: str,
    op_type: str,
    operands: Sequence[Quantised],
    dtype: np.dtype[Any],
    *,
    given: int = 1,
    extra: Mapping[str, Any] | None = None,
    **attributes: Any,
) -> Case:
    """Returns a case with the integer op that has all scales and zero points as operands."""
    writer = Writer(prefix, given)
    biases = [one.integers for one in operands if one.integers.dtype == I32]
    names = [
        writer.operand(one, place)
        for place, one in enumerate(operands)
        if one.integers.dtype != I32
    ]
    result = result_of(computed(op_type, [one.numbers for one in operands], **attributes), dtype)
    parameters = [writer.constant(one) for one in (result.scale, result.zero)]
    linear, domain = _LINEAR[op_type]
    flat = list(itertools.chain(*names))
    added = [writer.constant(one) for one in biases]
    order = {
        "Gemm": [*flat, *added, *parameters],
        "Concat": [*parameters, *flat],
    }.get(op_type, [*flat, *parameters, *added])
    writer.node(linear, order, domain, **attributes, **(extra or {}))
    return writer.case(result.integers)


def exact_sums(
    prefix: str, op_type: str, data: Quantised, weights: Quantised, **attributes: Any
) -> Case:
    """Returns a case of `MatMulInteger` or `ConvInteger`, whose result is the exact sums."""
    writer = Writer(prefix)
    (x, _, x_zero), (w, _, w_zero) = (
        writer.operand(one, place) for place, one in enumerate((data, weights))
    )
    writer.node(f"{op_type}Integer", [x, w, x_zero, w_zero], **attributes)
    ones = [
        Quantised(one.integers, np.ones_like(one.scale), one.zero, one.axis).numbers
        for one in (data, weights)
    ]
    return writer.case(computed(op_type, ones, **attributes).astype(I32), step=0.25)


def joined(cases: Sequence[Case]) -> ModelProto:
    """Returns one model with all cases."""
    return model_of(
        [node for case in cases for node in case.nodes],
        {name: array for case in cases for name, array in case.inputs.items()},
        {name: array for case in cases for name, array in case.constants.items()},
        [case.nodes[-1].output[0] for case in cases],
    )


def combinations() -> Iterator[tuple[np.dtype[Any], np.dtype[Any], bool, str, str]]:
    """Returns all combinations of types of data and weights, granularity, zero points, and
    values."""
    return itertools.product(BYTES, BYTES, (False, True), ZEROS, VALUES)
