"""What running a primitive costs: measured with the library itself, estimated where that is enough.

With several threads, a busy neighbour on one core stalls every run at its end, and little but
noise is measured. What matters for the layouts is therefore measured on one thread; the products
of matrices, where the threads decide, on all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.api import Api, PrimitiveDescriptor
from byoc_mlir.backends.dnnl.calls import MemoryDescriptor, PrimitiveCall
from byoc_mlir.backends.dnnl.choices import MEASURED, Choices
from byoc_mlir.backends.dnnl.descriptions import LayoutOf, Primitive
from byoc_mlir.backends.dnnl.dialect import ConvolutionOp
from byoc_mlir.backends.dnnl.enums import Arg
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

_OVERHEAD = 0.004
"""Milliseconds that any execution takes."""

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


@dataclass
class _Rate:
    """What an implementation got done in the time it was measured."""

    default: float
    work: float = 0.0
    milliseconds: float = 0.0
    samples: int = 0

    def add(self, work: float, milliseconds: float) -> None:
        self.work += work
        self.milliseconds += max(milliseconds - _OVERHEAD, 1e-4)
        self.samples += 1

    def estimate(self, work: float) -> float:
        rate = self.work / self.milliseconds if self.samples else self.default
        return _OVERHEAD + work / rate


@dataclass
class _Known:
    """What has been measured in this process."""

    times: dict[tuple[PrimitiveCall, int], float] = field(
        default_factory=dict[tuple[PrimitiveCall, int], float]
    )
    rates: dict[tuple[str, str, int], _Rate] = field(
        default_factory=dict[tuple[str, str, int], _Rate]
    )


_known = _Known()


@dataclass
class Budget:
    """How many seconds measuring may still take, for all regions of a model together."""

    seconds: float = 2.0


@dataclass(frozen=True, order=True)
class Cost:
    """What an op takes."""

    milliseconds: float
    algorithm: str = ""
    """The convolution's; other ops have one only."""
    is_measured: bool = False


class Costs:
    """Milliseconds of ops and of reorders; measurements are kept for the life of the process.

    Args:
        api: the library; times are those of the threads that are set when they are asked for.
        budget: what is left of the time for measuring.
        choices: what was asked for instead of the cheapest.
    """

    def __init__(self, api: Api, budget: Budget, choices: Choices):
        self._api = api
        self.choices = choices
        self._lanes = VectorUnit.of(Cpu.host().features).lanes
        self._budget = budget

    def op(self, op: Operation, layout: LayoutOf) -> float:
        """The time of an op with its operands and results in the given layouts."""
        return self.best(op, layout).milliseconds

    def best(self, op: Operation, layout: LayoutOf) -> Cost:
        """The cost of an op by its fastest algorithm, or by the one that was chosen already."""
        described = primitive(op, layout)
        assert described is not None
        if not isinstance(op, ConvolutionOp):
            return self._described(described)
        offers = self._convolution(op, layout, by_algorithm(described, "direct"))
        chosen = [one for one in offers if one.algorithm == op.algorithm.data != "direct"]
        return min(chosen or offers)

    def _convolution(
        self, op: ConvolutionOp, layout: LayoutOf, described: Primitive
    ) -> Sequence[Cost]:
        """The cost of a convolution by each algorithm that may be taken for it."""
        direct = self._described(described, "direct")
        if self.choices.convolution != MEASURED:
            return [self._asked_for(op, layout, direct)]
        for gemm in candidates(op, layout) if self._lanes == _IMPLICIT_LANES else ():
            if isinstance(gemm, ImplicitGemm) and gemm.is_faster:  # not cheaper: changes no layout
                direct = Cost(direct.milliseconds, gemm.name)
        if self.choices.winograd != MEASURED:
            return [direct]
        return [direct, *self._by_winograd(op, layout, described, direct.milliseconds)]

    def _asked_for(self, op: ConvolutionOp, layout: LayoutOf, direct: Cost) -> Cost:
        """The algorithm that was asked for, where it is written for the convolution."""
        wanted = self.choices.convolution
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
        return Cost(milliseconds, algorithm, (described.call, self._api.threads) in _known.times)

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
        described = reorder(MemoryDescriptor(shape, old), MemoryDescriptor(shape, new), value)
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
        key = (described.call, self._api.threads)
        if key in _known.times:
            return _known.times[key]
        default = _Rate(_default_rate(descriptor.implementation) * self._api.threads)
        family_key = (described.call.kind, family, self._api.threads)
        rate = _known.rates.setdefault(family_key, default)
        work = _work(described)
        if rate.samples >= most_samples or self._budget.seconds <= 0:
            return rate.estimate(work)
        start = time.monotonic()
        _known.times[key] = self._api.measure(descriptor, described.arguments)
        self._budget.seconds -= time.monotonic() - start
        rate.add(work, _known.times[key])
        return _known.times[key]


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
