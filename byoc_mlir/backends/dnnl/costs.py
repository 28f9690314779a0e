"""What running a primitive costs: measured with the library itself, estimated where that is enough.

With several threads, a busy neighbour on one core stalls every run at its end, and little but
noise is measured. What matters for the layouts is therefore measured on one thread; the products
of matrices, where the threads decide, on all of them.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from byoc_mlir.backends.dnnl import layouts
from byoc_mlir.backends.dnnl.api import Api, PrimitiveDescriptor
from byoc_mlir.backends.dnnl.calls import MemoryDescriptor, PrimitiveCall
from byoc_mlir.backends.dnnl.descriptions import LayoutOf, Primitive
from byoc_mlir.backends.dnnl.dialect import ConvolutionOp
from byoc_mlir.backends.dnnl.enums import Arg
from byoc_mlir.backends.dnnl.implicit_gemm import NAME as IMPLICIT_GEMM
from byoc_mlir.backends.dnnl.implicit_gemm import candidate as implicit_gemm
from byoc_mlir.backends.dnnl.primitives import primitive, reorder
from byoc_mlir.backends.dnnl.weighted import by_winograd
from byoc_mlir.backends.dnnl.winograd import ALGORITHMS, Winograd, candidates
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.lowering.host_pipeline import vector_bits
from byoc_mlir.lowering.llvm_ir.codegen import Target

IMPOSSIBLE = math.inf

_REFERENCE_PENALTY = 1e3
"""Milliseconds added to a reference implementation: taken when there is nothing else."""

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


_OWN_VECTOR_BITS = 256
"""What the kernels of `implicit_gemm.py` are written for; oneDNN's have longer vectors where the
processor has."""


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


class Costs:
    """Milliseconds of ops and of reorders; measurements are kept for the life of the process.

    Args:
        api: the library; times are those of the threads that are set when they are asked for.
        budget: what is left of the time for measuring.
        winograd: whether Winograd's algorithm may be used, where oneDNN has it.
    """

    def __init__(self, api: Api, budget: Budget, *, winograd: bool):
        self._api = api
        self._winograd = winograd
        self._has_own_kernels = vector_bits(Target.host()) == _OWN_VECTOR_BITS
        self._budget = budget

    def op(self, op: Operation, layout: LayoutOf) -> float:
        """The time of an op with its operands and results in the given layouts."""
        return self.algorithm(op, layout)[0]

    def algorithm(self, op: Operation, layout: LayoutOf) -> tuple[float, str]:
        """The time of an op by its fastest algorithm, and which one that is: '' for the only."""
        described = primitive(op, layout)
        assert described is not None
        if not isinstance(op, ConvolutionOp):
            return self._described(described), ""
        times = {op.algorithm.data: self._described(described)}
        if op.algorithm.data == "direct" and self._may_use_winograd(op):
            times["winograd"] = self._described(by_winograd(described))
        if self._winograd and op.algorithm.data in ("direct", *ALGORITHMS):
            direct = times[op.algorithm.data]
            for winograd in candidates(op, layout):
                products = self._by_products(winograd, direct)
                if products < direct - _WORTH_COMPILING and not winograd.is_heavy:
                    times[winograd.algorithm.name] = products
        if op.algorithm.data == "direct" and self._has_own_kernels:
            gemm = implicit_gemm(op, layout)
            if gemm is not None and gemm.is_faster:
                times[IMPLICIT_GEMM] = times.pop("direct")  # not less, which would change layouts
        return min((time, algorithm) for algorithm, time in times.items())

    def _may_use_winograd(self, op: ConvolutionOp) -> bool:
        return self._api.has_avx512 and self._winograd and shape_of(op.weights)[2:] == (3, 3)

    def _by_products(self, winograd: Winograd, direct: float) -> float:
        """About the time of Winograd's algorithm as products."""
        if self._api.has_avx512:  # the direct algorithm has vectors twice as wide
            direct *= 2
        return winograd.milliseconds(direct, self._api.threads)

    def _described(self, described: Primitive) -> float:
        descriptor = self._api.find(described.call)
        if descriptor is None:
            return IMPOSSIBLE
        implementation = descriptor.implementation
        if implementation.startswith("ref"):
            return _REFERENCE_PENALTY + self._time(described, descriptor, implementation, 0)
        if _unfolds_windows(described, implementation):
            return self._time(described, descriptor, f"{implementation}, unfolding", 0)
        return self._time(described, descriptor, implementation, math.inf)

    def is_measured(self, op: Operation, layout: LayoutOf) -> bool:
        """Whether the time of an op comes from a measurement."""
        described = primitive(op, layout)
        assert described is not None
        algorithm = self.algorithm(op, layout)[1]
        if algorithm == "winograd":
            described = by_winograd(described)
        if algorithm in (*ALGORITHMS, IMPLICIT_GEMM):
            return False
        return (described.call, self._api.threads) in _known.times

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
