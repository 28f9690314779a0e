"""Random numbers.

With a `seed`, a node returns the same numbers in every run; without a seed, each run returns other
numbers. The numbers differ from other runtimes', as the standard does not define the generator.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import onnx

from byoc_mlir.dialects.relay import elementwise, logic, random
from byoc_mlir.dialects.relay import index as positions
from byoc_mlir.dialects.relay import reduce as reductions
from byoc_mlir.dims import Size
from byoc_mlir.frontend.builder import NodeContext
from byoc_mlir.frontend.ops import arith
from byoc_mlir.frontend.ops.elementwise import cast
from byoc_mlir.frontend.registry import onnx_op
from byoc_mlir.frontend.value import NodeRefused, Value, dtype_of

DType: TypeAlias = np.dtype[Any]

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


class _Generator:
    """Random number generator of one node; each call of `uniform` or `normal` returns other
    numbers.
    """

    def __init__(self, context: NodeContext, seed: float | None):
        self._context = context
        self._stream = 0
        if seed is None:
            self._key = context.emit(random.RandomKeyOp)
        else:
            self._key = context.constant(np.array([seed], np.float64).view(np.uint32))

    def uniform(self, shape: Sequence[Size], dtype: DType) -> Value:
        """Returns uniformly distributed numbers in `[0, 1)`: multiples of 2⁻²⁴ in f32, of 2⁻⁵³ in
        f64.
        """
        high = self._bits(shape)
        if dtype == _F32:
            return self._fraction(high, 24, _F32)
        low = self._fraction(self._bits(shape), 26, _F64)
        scaled = arith.multiply(self._context, self._fraction(high, 27, _F64), 2.0**27)
        whole = arith.add(self._context, scaled, low)
        return arith.multiply(self._context, whole, 2.0**-27)

    def normal(self, shape: Sequence[Size], dtype: DType) -> Value:
        """Returns normally distributed numbers with mean 0 and deviation 1 (Box and Muller,
        1958).
        """
        context = self._context
        radius = arith.subtract(context, 1.0, self.uniform(shape, dtype))  # never 0
        radius = arith.multiply(context, context.emit(elementwise.LogOp, radius), -2.0)
        radius = context.emit(elementwise.SqrtOp, radius)
        angle = arith.multiply(context, self.uniform(shape, dtype), 2 * math.pi)
        return arith.multiply(context, radius, context.emit(elementwise.CosOp, angle))

    def _bits(self, shape: Sequence[Size]) -> Value:
        size = math.prod(shape)
        bits = self._context.emit(random.RandomBitsOp, self._key, size=size, stream=self._stream)
        self._stream += 1
        return arith.reshape(self._context, bits, shape)

    def _fraction(self, bits: Value, count: int, dtype: DType) -> Value:
        """Returns the upper `count` bits as a number in `[0, 1)`."""
        upper = self._context.emit(logic.RightShiftOp, bits, np.uint32(32 - count))
        return arith.multiply(self._context, cast(self._context, upper, dtype), 2.0**-count)


def _computed_in(dtype: DType) -> DType:
    return _F64 if dtype == _F64 else _F32


def _float_dtype(number: int | None, data: Value | None = None) -> DType:
    """Returns the type that a node requests; by default its input's type, or f32 without input."""
    own = _F32 if data is None else data.dtype
    dtype = own if number is None else dtype_of(number)
    if dtype.kind in "iub":
        raise NodeRefused(f"random numbers of {dtype} are not defined, only of floats")
    return dtype


@dataclass(frozen=True, kw_only=True)
class RandomAttributes(ABC):
    """Attributes of all random floats."""

    dtype: int | None = None
    seed: float | None = None

    def drawn(
        self, context: NodeContext, shape: Sequence[Size], like: Value | None = None
    ) -> Value:
        """Returns random numbers of the requested type; by default the type of `like`."""
        dtype = _float_dtype(self.dtype, like)
        numbers = self.numbers(context, _Generator(context, self.seed), shape, _computed_in(dtype))
        return cast(context, numbers, dtype)

    @abstractmethod
    def numbers(
        self, context: NodeContext, generator: _Generator, shape: Sequence[Size], dtype: DType
    ) -> Value:
        """Returns random numbers of the distribution."""


@dataclass(frozen=True, kw_only=True)
class NormalAttributes(RandomAttributes):
    """Attributes of a normal distribution."""

    mean: float = 0.0
    scale: float = 1.0

    def numbers(
        self, context: NodeContext, generator: _Generator, shape: Sequence[Size], dtype: DType
    ) -> Value:
        return _moved(context, generator.normal(shape, dtype), self.scale, self.mean)


@dataclass(frozen=True, kw_only=True)
class UniformAttributes(RandomAttributes):
    """Attributes of a uniform distribution."""

    low: float = 0.0
    high: float = 1.0

    def numbers(
        self, context: NodeContext, generator: _Generator, shape: Sequence[Size], dtype: DType
    ) -> Value:
        return _moved(context, generator.uniform(shape, dtype), self.high - self.low, self.low)


def _moved(context: NodeContext, numbers: Value, scale: float, shift: float) -> Value:
    return arith.add(context, arith.multiply(context, numbers, scale), shift)


def _register(op_type: str, kind: type[RandomAttributes]) -> None:
    @onnx_op(op_type, attributes=kind)
    def drawn(context: NodeContext, *, attributes: RandomAttributes, shape: Sequence[int]) -> Value:
        return attributes.drawn(context, shape)

    @onnx_op(f"{op_type}Like", attributes=kind)
    def drawn_like(context: NodeContext, data: Value, *, attributes: RandomAttributes) -> Value:
        return attributes.drawn(context, data.sizes, data)

    del drawn, drawn_like


_register("RandomNormal", NormalAttributes)
_register("RandomUniform", UniformAttributes)


@onnx_op("Bernoulli")
def bernoulli(
    context: NodeContext, data: Value, *, dtype: int | None = None, seed: float | None = None
) -> Value:
    wanted = data.dtype
    if dtype is not None:
        wanted = dtype_of(dtype)
    computed = _computed_in(data.dtype)
    numbers = _Generator(context, seed).uniform(data.sizes, computed)
    return cast(context, arith.less(context, numbers, cast(context, data, computed)), wanted)


@onnx_op("Dropout")
def dropout(
    context: NodeContext,
    data: Value,
    ratio: Value | None = None,
    training_mode: Value | None = None,
    *,
    is_test: int = 1,
    seed: int | None = None,
) -> Sequence[Value]:
    training = training_mode is not None and context.known(training_mode, "training_mode").any()
    dropped = 0.5 if ratio is None else float(context.number(ratio, "ratio"))
    if not training or not dropped:
        return _without_dropout(context, data)
    computed = _computed_in(data.dtype)
    numbers = _Generator(context, seed).uniform(data.sizes, computed)
    is_kept = arith.less(context, dropped, numbers)
    scale = 1 / (1 - dropped) if dropped < 1 else 0.0
    scaled = arith.multiply(context, cast(context, data, computed), scale)
    return cast(context, arith.where(context, is_kept, scaled, 0.0), data.dtype), is_kept


def _without_dropout(context: NodeContext, data: Value) -> Sequence[Value]:
    if not context.wants(1):
        return (data,)
    mask_type = np.dtype(np.bool_) if context.opset >= 10 else data.dtype
    return data, arith.broadcast(context, context.constant(np.ones((), mask_type)), data.sizes)


@onnx_op("Multinomial")
def multinomial(
    context: NodeContext,
    logits: Value,
    *,
    dtype: int = onnx.TensorProto.INT32,
    sample_size: int = 1,
    seed: float | None = None,
) -> Value:
    """Imports Multinomial; a sample is the number of cumulative probabilities that a uniform number
    reaches.
    """
    batch, classes = logits.sizes[0], logits.number(1)
    computed = _computed_in(logits.dtype)
    likely = context.emit(reductions.SoftmaxOp, cast(context, logits, computed), axis=1)
    reached = context.emit(positions.CumsumOp, likely, axis=1)
    total = arith.section(context, reached, 1, classes - 1, classes)
    drawn = _Generator(context, seed).uniform((batch, sample_size), computed)
    drawn = arith.reshape(context, arith.multiply(context, drawn, total), (batch, sample_size, 1))
    before = arith.section(context, reached, 1, 0, classes - 1)  # the last class takes the rest
    before = arith.reshape(context, before, (batch, 1, classes - 1))
    passed = context.emit(logic.GreaterEqualOp, drawn, before)
    counted = cast(context, passed, dtype_of(dtype))
    return arith.reduced(context, reductions.SumOp, counted, [2], keepdims=False)
