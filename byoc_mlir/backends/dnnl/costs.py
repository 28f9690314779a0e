"""What running a primitive costs: measured with the library itself, estimated where that is enough.

With several threads, a busy neighbour on one core stalls every run at its end, and little but
noise is measured. What matters for the layouts is therefore measured on one thread; the products
of matrices, where the threads decide, on all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.api import PrimitiveDescriptor, api
from byoc_mlir.backends.dnnl.choices import MEASURED, Choices
from byoc_mlir.backends.dnnl.descriptions import LayoutOf, Primitive, Types
from byoc_mlir.backends.dnnl.dialect import ActivationOp, ConvolutionOp, layout_of
from byoc_mlir.backends.dnnl.enums import Arg
from byoc_mlir.backends.dnnl.likeness import likeness_of
from byoc_mlir.backends.dnnl.measurements import Rate, current_measuring
from byoc_mlir.backends.dnnl.own_kernels import candidates
from byoc_mlir.backends.dnnl.primitives import primitive, reorder
from byoc_mlir.backends.dnnl.weighted import by_algorithm
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.kernels.implicit_gemm.implicit_gemm import ImplicitGemm
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.winograd import Winograd
from byoc_mlir.runtime.cpu import Cpu

IMPOSSIBLE = math.inf

_REFERENCE_PENALTY = 1e3
"""Milliseconds added to a reference implementation: taken when there is nothing else."""

_UNWANTED_PENALTY = 1e6
"""Milliseconds added to a convolution by another algorithm than the one that was asked for."""

_RATES = (("ref", 1e4), ("simple", 2e6), ("x64:gemm", 1e7), ("", 2e7))
"""What implementations get done before they are measured, by the start of their names:
multiplications or bytes per millisecond and thread."""

_REORDER_FACTOR, _REORDER_OVERHEAD = 5.0, 0.05
"""Reorders count for more than they take alone: they gain less from threads than products, and
evict from the caches what the next primitive would have found there."""

_REORDER_SAMPLES = 2
"""Reorders between two kinds of layout that are measured before the others are estimated."""


_WORTH_COMPILING = 0.02
"""Milliseconds that a convolution must gain by Winograd's algorithm, since LLVM takes half a second
for its code."""


_IMPLICIT_LANES = 8
"""The vectors with which implicit products were measured to beat oneDNN's direct algorithm."""


ACTIVATION_RATES: Mapping[str, float] = {"swish": 2.2e6, "gelu_erf": 1.5e6, "gelu_tanh": 1.8e6}
"""Elements per millisecond on one thread; timed on an AMD EPYC with AVX2."""


@dataclass(frozen=True, order=True)
class Cost:
    """What an op takes."""

    milliseconds: float
    algorithm: str = ""
    """The convolution's; other ops have one only."""
    is_measured: bool = False


class Costs:
    """Milliseconds of ops and of reorders, on the OpenMP threads that are set when they are asked.

    Args:
        choices: what was asked for instead of the cheapest; left out, nothing was.
    """

    def __init__(self, choices: Choices | None = None):
        self._api = api()
        self._choices = choices or Choices()
        self._lanes = VectorUnit.of(Cpu.host().features).lanes
        self._measuring = current_measuring()

    def op(self, op: Operation, layout: LayoutOf) -> float:
        """The time of an op with its operands and results in the given layouts."""
        return self.best(op, layout).milliseconds

    def best(self, op: Operation, layout: LayoutOf) -> Cost:
        """The cost of an op by its fastest algorithm, whatever its own one is."""
        return min(self._offers(op, layout))

    def decided(self, op: Operation) -> float:
        """The time of an op as it is: in the layouts of its types, by its own algorithm."""
        if isinstance(op, ActivationOp):
            return activation_milliseconds(op)
        offers = self._offers(op, layout_of)
        if isinstance(op, ConvolutionOp):
            offers = [one for one in offers if one.algorithm == op.algorithm.data] or offers
        return min(offers).milliseconds

    def _offers(self, op: Operation, layout: LayoutOf) -> Sequence[Cost]:
        """The costs of an op by each algorithm."""
        described = primitive(op, layout)
        assert described is not None
        if not isinstance(op, ConvolutionOp):
            return [self._described(described)]
        return self._convolution(op, layout, by_algorithm(described, "direct"))

    def _convolution(
        self, op: ConvolutionOp, layout: LayoutOf, described: Primitive
    ) -> Sequence[Cost]:
        """The cost of a convolution by each algorithm that may be taken for it."""
        direct = self._described(described, "direct")
        if self._choices.convolution != MEASURED:
            return [self._asked_for(op, layout, direct)]
        for gemm in candidates(op, layout) if self._lanes == _IMPLICIT_LANES else ():
            if isinstance(gemm, ImplicitGemm) and gemm.is_faster:  # not cheaper: changes no layout
                direct = Cost(direct.milliseconds, gemm.name)
        if self._choices.winograd != MEASURED:
            return [direct]
        return [direct, *self._by_winograd(op, layout, described, direct.milliseconds)]

    def _asked_for(self, op: ConvolutionOp, layout: LayoutOf, direct: Cost) -> Cost:
        """The algorithm that was asked for, where it is written for the convolution."""
        wanted = self._choices.convolution
        written = {"direct", *(one.name for one in candidates(op, layout))}
        if wanted not in written:
            return replace(direct, milliseconds=direct.milliseconds + _UNWANTED_PENALTY)
        return direct if wanted == "direct" else Cost(direct.milliseconds, wanted)

    def _by_winograd(
        self, op: ConvolutionOp, layout: LayoutOf, described: Primitive, direct: float
    ) -> Iterator[Cost]:
        """The costs by Winograd's algorithms, the library's and our own, where they pay."""
        if self._api.has_avx512 and shape_of(op.weights)[2:] == (3, 3):
            yield self._described(by_algorithm(described, "winograd"), "winograd")
        for winograd in candidates(op, layout):
            if not isinstance(winograd, Winograd) or winograd.is_heavy:
                continue
            as_direct = direct * self._lanes / winograd.unit.lanes  # with its shorter vectors
            products = winograd.milliseconds(as_direct, self._api.threads)
            if products < direct - _WORTH_COMPILING:
                yield Cost(products, winograd.name)

    def _described(self, described: Primitive, algorithm: str = "") -> Cost:
        descriptor = self._api.find(described.call)
        if descriptor is None:
            return Cost(IMPOSSIBLE, algorithm)
        milliseconds = self._milliseconds(described, descriptor)
        known = self._measuring.known.time(described.call, self._api.threads)
        return Cost(milliseconds, algorithm, known is not None)

    def _milliseconds(self, described: Primitive, descriptor: PrimitiveDescriptor) -> float:
        implementation = descriptor.implementation
        if implementation.startswith("ref"):
            return _REFERENCE_PENALTY + self._time(described, descriptor, implementation, 0)
        if _unfolds_windows(described, implementation):
            return self._time(described, descriptor, f"{implementation}, unfolding", 0)
        return self._time(described, descriptor, implementation, math.inf)

    def reorder(self, value: SSAValue, old: str, new: str) -> float:
        """The time of bringing a value from one layout to another; 0 where nothing moves."""
        shape = shape_of(value)
        if layouts.same_bytes(shape, old, new):
            return 0.0
        source, destination = (Types(lambda _, one=one: one).of(value) for one in (old, new))
        described = reorder(source, destination, value)
        descriptor = self._api.find(described.call)
        if descriptor is None:
            return IMPOSSIBLE
        alone = self._time(described, descriptor, f"{old} to {new}", _REORDER_SAMPLES)
        return _REORDER_FACTOR * alone + _REORDER_OVERHEAD

    def _time(
        self,
        described: Primitive,
        descriptor: PrimitiveDescriptor,
        family: str,
        most_samples: float,
    ) -> float:
        known, key = self._measuring.known, (described.call, self._api.threads)
        found = known.time(*key)
        if found is not None:
            return found
        default = Rate(_default_rate(descriptor.implementation) * self._api.threads)
        family_key = (described.call.kind, family, self._api.threads)
        rate = known.rates.setdefault(family_key, default)
        work = _work(described)
        like = likeness_of(described, family, self._api.threads)
        estimate = known.alike.estimate(like, work)
        if estimate is not None:
            return estimate
        if rate.samples >= most_samples or self._measuring.seconds <= 0:
            return rate.estimate(work)
        start = time.monotonic()
        known.times[key] = self._api.measure(descriptor, described.arguments, described.parameters)
        self._measuring.seconds -= time.monotonic() - start
        rate.add(work, known.times[key])
        known.alike.add(like, work, known.times[key])
        return known.times[key]


def activation_milliseconds(op: ActivationOp) -> float:
    """About what an activation by our own code takes on one thread."""
    return math.prod(shape_of(op.output)) / ACTIVATION_RATES[op.algorithm.data]


def _default_rate(implementation: str) -> float:
    return next(rate for start, rate in _RATES if implementation.startswith(start))


def _unfolds_windows(described: Primitive, implementation: str) -> bool:
    """Whether it is a convolution of one group by way of a larger matrix product: never wins."""
    if "conv" not in described.call.kind or "gemm" not in implementation:
        return False
    result = described.operands[-1].descriptor.dims
    weights = [one.descriptor.dims for one in described.operands if one.argument == Arg.WEIGHTS]
    return any(len(dims) == len(result) and math.prod(dims[2:]) > 1 for dims in weights)


def _work(described: Primitive) -> float:
    """Multiplications of a primitive with weights, bytes moved by the others."""
    result = described.operands[-1].descriptor.dims
    for operand in described.operands:
        if operand.argument == Arg.WEIGHTS:
            outputs = math.prod(result) / result[1 if len(result) > 2 else -1]
            return outputs * math.prod(operand.descriptor.dims)
    return float(sum(operand.descriptor.byte_size for operand in described.operands))
