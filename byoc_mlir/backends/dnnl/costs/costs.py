"""Costs of ops: estimated, or measured if the model was tuned.

On several threads, load on one core delays the end of every run, so measurements are mostly noise.
Layouts are therefore compared on one thread. Matmuls, whose cost depends on the threads, are
compared on all of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import dialect as dnnl
from byoc_mlir.backends.dnnl.choices import MEASURED, Choices
from byoc_mlir.backends.dnnl.costs.estimates import estimated_milliseconds
from byoc_mlir.backends.dnnl.costs.measured import measured_milliseconds
from byoc_mlir.backends.dnnl.dialect.quantized import is_ours
from byoc_mlir.backends.dnnl.library import layouts
from byoc_mlir.backends.dnnl.library.objects import find
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive, LayoutOf, Types
from byoc_mlir.backends.dnnl.primitives.joins import can_join
from byoc_mlir.backends.dnnl.primitives.normalizations import join_of
from byoc_mlir.backends.dnnl.primitives.of_ops import primitive, reorder
from byoc_mlir.backends.dnnl.primitives.own_conversions import interleaving
from byoc_mlir.backends.dnnl.primitives.own_kernels import candidates, sharing_code
from byoc_mlir.backends.dnnl.primitives.weighted import by_algorithm, is_packable
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.kernels.convolution import ConvolutionKernel
from byoc_mlir.kernels.costs import (
    ASSUMED,
    ActivationCalibration,
    ConvolutionCalibration,
    RoundedCalibration,
    calibration,
)
from byoc_mlir.kernels.interleave import NAME as INTERLEAVE
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.winograd import Winograd
from byoc_mlir.onednn.constants import Arg
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.primitives import PrimitiveDescriptor
from byoc_mlir.runtime.system.cpu import Cpu

IMPOSSIBLE = math.inf

_REFERENCE_PENALTY = 1e3
"""Milliseconds added to a reference implementation, so that it is chosen only if there is no
other."""

_UNWANTED_PENALTY = 1e6
"""Milliseconds added to a convolution with another algorithm than the requested one, or in layouts
that its kernel does not support.
"""


@dataclass(frozen=True, order=True)
class Cost:
    """Latency of an op with one algorithm."""

    milliseconds: float
    algorithm: str = ""
    """Algorithm of a convolution or conversion; other ops have only one."""
    weight_bytes: int = field(default=0, compare=False)
    """Bytes of a convolution's packed weights."""


class Costs:
    """Milliseconds of ops and of reorders, on the current number of OpenMP threads.

    Args:
        choices: choices that the user requested instead of the cheapest ones; by default, none.
    """

    def __init__(self, choices: Choices | None = None):
        self._engine = engine()
        self._choices = choices or Choices()
        self._lanes = VectorUnit.of(Cpu.host().features).lanes
        self._equal: dict[Hashable, dnnl.ConvolutionOp] = {}
        """First one of equal convolutions."""
        self._first: dict[dnnl.ConvolutionOp, dnnl.ConvolutionOp] = {}
        """First one of the convolutions that are equal to a convolution."""
        self._convolutions: dict[tuple[dnnl.ConvolutionOp, tuple[str, ...]], Sequence[Cost]] = {}
        """Costs of equal convolutions by the layouts of their operands and results."""

    def op(self, op: Operation, layout: LayoutOf) -> float:
        """Returns the milliseconds of an op with its operands and results in the given layouts."""
        return self.best(op, layout).milliseconds

    def best(self, op: Operation, layout: LayoutOf) -> Cost:
        """Returns the cost of an op with its fastest algorithm, regardless of the algorithm that
        the op names.
        """
        return min(self.offers(op, layout))

    def decided(self, op: Operation) -> float:
        """Returns the milliseconds of an op as it is.

        The layouts are those of the op's types, and the algorithm is the one that the op names. If
        a pass has recorded the latency, returns it.
        """
        if isinstance(op, dnnl.ExecutedOp) and op.milliseconds is not None:
            return op.milliseconds.value.data
        if isinstance(op, dnnl.ActivationOp):
            return activation_milliseconds(op)
        if isinstance(op, dnnl.NormalizedConcatOp):
            return join_of(op).milliseconds(self._engine.threads)
        offers = self.offers(op, dnnl.layout_of)
        if isinstance(op, dnnl.ConvolutionOp | dnnl.ConvertOp):
            offers = [one for one in offers if one.algorithm == op.algorithm.data] or offers
        return min(offers).milliseconds

    def offers(self, op: Operation, layout: LayoutOf) -> Sequence[Cost]:
        """Returns the cost of an op with each algorithm that supports it."""
        if isinstance(op, dnnl.ConvolutionOp):
            return self._convolution(op, layout)
        if isinstance(op, dnnl.LookupOp):
            return [Cost(_lookup_milliseconds(op, layout))]
        if isinstance(op, dnnl.ConcatOp) and can_join(op, layout):
            return [Cost(0.0)]
        if isinstance(op, dnnl.QuantizedConvolutionOp) and is_ours(op):
            return self._by_our_integer_kernels(op, layout)
        described = primitive(op, layout)
        assert described is not None
        if isinstance(op, dnnl.QuantizedConvolutionOp):
            direct = self._described(described, "direct")
            return [direct, *self._channels_apart(op, layout, direct.milliseconds)]
        if isinstance(op, dnnl.ConvertOp):
            direct = self._described(described, "direct")
            return [direct, *self._interleaved(op, layout, direct.milliseconds)]
        return [self._described(described)]

    def _interleaved(self, op: dnnl.ConvertOp, layout: LayoutOf, direct: float) -> Iterator[Cost]:
        """Yields the cost of a conversion with the built-in kernel, if the estimated gain justifies
        it.

        The kernel's code is short, so its compile time does not count.
        """
        if interleaving(op, layout) is None:
            return
        accepted = ASSUMED.estimate_margin * direct
        elements = math.prod(shape_of(op.output))
        milliseconds = elements / calibration(RoundedCalibration).interleaved / self._engine.threads
        if milliseconds < accepted:
            yield Cost(milliseconds, INTERLEAVE)

    def _convolution(self, op: dnnl.ConvolutionOp, layout: LayoutOf) -> Sequence[Cost]:
        """Returns the cost of a convolution with each algorithm that supports it."""
        if op not in self._first:
            self._first[op] = self._equal.setdefault(_costed(op), op)
        key = self._first[op], tuple(map(layout, (*op.operands, op.output)))
        if key not in self._convolutions:
            self._convolutions[key] = self._by_algorithm(op, layout)
        return self._convolutions[key]

    def _by_algorithm(self, op: dnnl.ConvolutionOp, layout: LayoutOf) -> Sequence[Cost]:
        """Returns the cost of a convolution by each algorithm that may compute it."""
        described = primitive(op, layout)
        assert described is not None
        described = by_algorithm(described, "direct")
        direct = self._from_memory(self._described(described, "direct"))
        if self._choices.convolution != MEASURED:
            return [self._asked_for(op, layout, direct)]
        own = self._by_our_kernels(op, layout, direct.milliseconds)
        return [direct, *self._by_the_librarys_winograd(op, described), *own]

    def _asked_for(self, op: dnnl.ConvolutionOp, layout: LayoutOf, direct: Cost) -> Cost:
        """Returns the cost with the requested algorithm, or a penalty if it does not support the
        convolution.
        """
        wanted = self._choices.convolution
        written = {"direct", *(one.name for one in candidates(op, layout))}
        if wanted not in written:
            return replace(direct, milliseconds=direct.milliseconds + _UNWANTED_PENALTY)
        return direct if wanted == "direct" else Cost(direct.milliseconds, wanted)

    def _by_the_librarys_winograd(
        self, op: dnnl.ConvolutionOp, described: DescribedPrimitive
    ) -> Iterator[Cost]:
        is_wanted = self._choices.winograd == MEASURED
        if is_wanted and self._engine.has_avx512 and shape_of(op.weights)[2:] == (3, 3):
            winograd = by_algorithm(described, "winograd")
            yield self._from_memory(self._described(winograd, "winograd"))

    def _from_memory(self, cost: Cost) -> Cost:
        """Adds the time to read a convolution's weights from memory, as a model does.

        During the measurement, the weights were in caches.
        """
        reading = (
            cost.weight_bytes
            / calibration(ConvolutionCalibration).weight_bytes
            / self._engine.threads
        )
        return replace(cost, milliseconds=cost.milliseconds + reading)

    def _by_our_kernels(
        self, op: dnnl.ConvolutionOp, layout: LayoutOf, direct: float
    ) -> Iterator[Cost]:
        """Yields the costs of built-in kernels whose estimated gain justifies them."""
        kernels = list(candidates(op, layout))
        if not kernels:
            return
        gain = ASSUMED.kernel_code / sharing_code(op)
        accepted = min(ASSUMED.estimate_margin * direct, direct - gain)
        for kernel in kernels:
            is_winograd = isinstance(kernel, Winograd)
            if kernel.is_heavy or (is_winograd and self._choices.winograd != MEASURED):
                continue
            milliseconds = kernel.milliseconds(self._products(kernel), self._engine.threads)
            if milliseconds < accepted:
                size = 4 * math.prod(kernel.weights_shape)
                yield Cost(milliseconds, kernel.name, weight_bytes=size)

    def _channels_apart(
        self, op: dnnl.QuantizedConvolutionOp, layout: LayoutOf, direct: float
    ) -> Iterator[Cost]:
        """Yields the cost of the built-in depthwise kernel, if its estimated gain justifies it."""
        from byoc_mlir.backends.dnnl.primitives.own_integer_kernels import integer_kernels
        from byoc_mlir.kernels.integer_gemm.depthwise import DepthwiseOfBytes

        if op.post_op_operands:
            return
        accepted = min(ASSUMED.estimate_margin * direct, direct - ASSUMED.kernel_code)
        for kernel in integer_kernels(op, layout):
            if isinstance(kernel, DepthwiseOfBytes):
                milliseconds = kernel.milliseconds(self._engine.threads)
                if milliseconds < accepted:
                    yield Cost(milliseconds, kernel.name, weight_bytes=kernel.weight_bytes)

    def _by_our_integer_kernels(
        self, op: dnnl.QuantizedConvolutionOp, layout: LayoutOf
    ) -> Sequence[Cost]:
        from byoc_mlir.backends.dnnl.primitives.own_integer_kernels import integer_kernels
        from byoc_mlir.kernels.integer_gemm.through_floats import ThroughFloats

        threads = self._engine.threads
        found: list[Cost] = []
        for kernel in integer_kernels(op, layout):
            if not isinstance(kernel, ThroughFloats):
                milliseconds = kernel.milliseconds(threads)
            elif self._choices.winograd == MEASURED:
                milliseconds = kernel.milliseconds(self._products(kernel.kernel), threads)
            else:
                continue
            found.append(Cost(milliseconds, kernel.name, weight_bytes=kernel.weight_bytes))
        return found or [Cost(_UNWANTED_PENALTY, op.algorithm.data)]

    def _products(self, kernel: ConvolutionKernel) -> float:
        """Estimates the time of a direct convolution algorithm with vectors as wide as the
        kernel's, on all threads.
        """
        rate = calibration(ConvolutionCalibration).products * kernel.unit.lanes / self._lanes
        return kernel.convolution.products / rate / self._engine.threads

    def _described(self, described: DescribedPrimitive, algorithm: str = "") -> Cost:
        descriptor = find(described.call)
        if descriptor is None:
            return Cost(IMPOSSIBLE, algorithm)
        size = descriptor.descriptor(Arg.WEIGHTS).byte_size if algorithm else 0
        measured = measured_milliseconds(described, descriptor, self._engine.threads)
        if measured is not None:
            return Cost(measured, algorithm, size)
        milliseconds = self._estimated(described, descriptor)
        if descriptor.implementation.startswith("ref"):
            milliseconds += _REFERENCE_PENALTY
        return Cost(milliseconds, algorithm, size)

    def _estimated(self, described: DescribedPrimitive, descriptor: PrimitiveDescriptor) -> float:
        implementation, threads = descriptor.implementation, self._engine.threads
        return estimated_milliseconds(described, implementation, threads, self._lanes)

    def reorder(self, value: SSAValue, old: str, new: str) -> float:
        """Returns the milliseconds of a reorder between two layouts; 0 if no element moves."""
        shape = shape_of(value)
        if layouts.same_bytes(shape, old, new):
            return 0.0
        source, destination = (Types(lambda _, one=one: one).of(value) for one in (old, new))
        described = reorder(source, destination, value, value)
        descriptor = find(described.call)
        if descriptor is None:
            return IMPOSSIBLE
        measured = measured_milliseconds(described, descriptor, self._engine.threads)
        return self._estimated(described, descriptor) if measured is None else measured


def _costed(op: dnnl.ConvolutionOp) -> Hashable:
    """Returns a key of all that the costs of a convolution depend on, but for layouts."""
    types = tuple(value.type for value in (*op.operands, op.output))
    weights = type(op.weights.owner), is_packable(op.weights)
    return op.parent, types, weights, tuple(op.properties.items())


def activation_milliseconds(op: dnnl.ActivationOp) -> float:
    """Estimates the time of an activation by the built-in kernel on one thread."""
    known = calibration(ActivationCalibration).numbers()
    return math.prod(shape_of(op.output)) / known[op.algorithm.data]


def _lookup_milliseconds(op: dnnl.LookupOp, layout: LayoutOf) -> float:
    """Estimates the time of a lookup.

    A layout with padding is impossible: padding must stay zero, and the table may map zero to
    another value.
    """
    shape, wanted = shape_of(op.output), layout(op.output)
    if layouts.padded(shape, wanted) != shape:
        return IMPOSSIBLE
    return (
        ASSUMED.primitive_call
        + 2 * math.prod(shape) / calibration(ConvolutionCalibration).transformed_bytes
    )
