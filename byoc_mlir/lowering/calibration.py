"""Measurement of the machine calibration of `kernels/costs.py` on this machine.

Kernels are compiled once and run interleaved on one thread. The clock is the thread's CPU time, so
that other processes do not count. The result is from the shortest runs of each kernel.
"""

from __future__ import annotations

import ctypes
import math
import operator
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import bf16

from byoc_mlir.kernels.activations import FORMULAS, activation_code
from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel, Image, KernelCode, Slot
from byoc_mlir.kernels.convolutions import convolution_kernels
from byoc_mlir.kernels.costs import (
    ActivationCalibration,
    ConvolutionCalibration,
    IntegerCalibration,
    RoundedCalibration,
    Table,
)
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.interleave import interleave_code
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.kernels.winograd.winograd import Winograd
from byoc_mlir.locks import cached_property
from byoc_mlir.lowering.eviction import eviction_code
from byoc_mlir.lowering.llvm_ir.codegen import emit_objects
from byoc_mlir.lowering.mark_vectorised_functions import MarkVectorisedFunctions
from byoc_mlir.lowering.symbols import external_functions
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.runtime.system.libraries import resolve_symbol
from byoc_mlir.runtime.system.threads import thread_clock

if TYPE_CHECKING:  # imported where they are measured: few models have them
    from byoc_mlir.kernels.integer_gemm.convolution import IntegerConvolution
    from byoc_mlir.kernels.integer_gemm.depthwise import DepthwiseOfBytes
    from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit

_SECONDS = 0.05
"""Time limit for all runs of a table, in seconds. A phase of high load usually lasts much longer,
so other processes repeat the measurement."""

_ALIKE, _SPREAD = 3, 1.02
"""Criterion to end early: the `_ALIKE` shortest runs of each kernel differ by at most the factor
`_SPREAD`."""

_ELEMENTS = 1 << 15
"""Number of elements of an activation; they fit in L2."""

_LEAST_SHARE = 0.02
"""Minimum of a difference of two times, as a share of the run: without it, noise could make it
0."""

_LINE, _NUMBER_BYTES = 16, 4
"""Elements of a cache line, and bytes of an element."""


_BYTES_SHAPE = (1, 14, 14, 256)
"""Shape of an image of int8, NHWC."""


_PLANES = (1, 3, 224 * 224)
"""Shape of the interleaved planes: images, channels, pixels."""


@dataclass(frozen=True)
class Benchmark:
    """Measurement of one table of the machine calibration."""

    measure: Callable[[], list[float]]
    """Function that returns the milliseconds of some kernels."""
    table: Callable[[Sequence[float]], Table]
    """Function that computes the calibration from these milliseconds."""
    feature: str = ""
    """Processor feature that the kernels need; without it, the default calibration holds."""

    @property
    def is_possible(self) -> bool:
        """True if this processor can run the measured kernels."""
        return not self.feature or self.feature in Cpu.host().features


def _convolutions() -> list[float]:
    """Returns the milliseconds of Winograd's transforms, weights read from memory, and GEMMs."""
    kernels = [_transforms(), _weights(), _products()]
    codes = {str(number): kernel.code(1) for number, kernel in enumerate(kernels)}
    eviction = {"eviction": eviction_code(_weights().weight_bytes)}
    with _native({**codes, **eviction}) as functions:
        transforms, weights, products = (
            _LoadedKernel(functions[name], _memory(kernel, code))
            for (name, code), kernel in zip(codes.items(), kernels, strict=True)
        )
        evicted = replace(weights, before=functions["eviction"])
        return _shortest([transforms, evicted, products])


def _convolution_calibration(times: Sequence[float]) -> ConvolutionCalibration:
    transforms, weights, products = _transforms(), _weights(), _products()
    rate = products.convolution.products / times[2]
    transformed = transforms.transformed_bytes / _rest(times[0], transforms.products / rate)
    known = weights.products / rate + weights.transformed_bytes / transformed
    return ConvolutionCalibration(rate, transformed, weights.weight_bytes / _rest(times[1], known))


def _transforms() -> Winograd:
    return _winograd(64, 56)


def _weights() -> Winograd:
    return _winograd(256, 14)


def _products() -> ConvolutionKernel:
    return _kernel(_convolution(256, 14, window=1), "implicit_gemm")


def _integers() -> list[float]:
    """Returns the milliseconds of GEMMs (`i16` and int8 operands), and of a depthwise window."""
    kernels = _integer_kernels()
    codes = {name: kernel.code(1) for name, kernel in kernels.items()}
    with _native(codes) as functions:
        return _shortest(
            [
                _LoadedKernel(functions[name], _bytes_memory(kernel, codes[name]))
                for name, kernel in kernels.items()
            ]
        )


def _integer_calibration(times: Sequence[float]) -> IntegerCalibration:
    kernels = _integer_kernels().items()
    return IntegerCalibration(
        **{name: it.products / taken for (name, it), taken in zip(kernels, times, strict=True)}
    )


def _integer_kernels() -> Mapping[str, IntegerConvolution | DepthwiseOfBytes]:
    """Returns the measured kernels by the name of their parameter in the calibration."""
    from byoc_mlir.kernels.integer_gemm.depthwise import DepthwiseOfBytes
    from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue
    from byoc_mlir.kernels.integer_gemm.unit import IntegerUnit

    pairs = replace(IntegerUnit.of(Cpu.host().features), has_vnni=False)
    bytes_ = replace(pairs, overlaps=pairs.saturates)
    windows = ((3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    epilogue = IntegerEpilogue("bytes", offset=True)
    return {
        "products": _pixels(pairs),
        "bytes": _pixels(bytes_),
        "depthwise": DepthwiseOfBytes(pairs, _BYTES_SHAPE, False, 0, *windows, epilogue),
    }


def _bytes_memory(
    kernel: IntegerConvolution | DepthwiseOfBytes, code: KernelCode
) -> Mapping[Slot, NDArray[Any]]:
    """Returns the memory for each slot of a kernel whose source and result have equal size."""
    image = math.prod(kernel.shape) // _NUMBER_BYTES
    inner, channels = kernel.products // math.prod(kernel.shape), kernel.shape[3]
    weights, factors = np.ones((channels, inner, 1, 1), np.int8), np.ones((2, channels), np.float32)
    held = {
        Slot.WORKSPACE: _filled(kernel.workspace_bytes(1) // _NUMBER_BYTES),
        Slot.SOURCE: _filled(image),
        Slot.RESULT: _filled(image),
        Slot.WEIGHTS: kernel.pack(weights, *factors),
    }
    return _with_words(held, code)


def _pixels(unit: IntegerUnit) -> IntegerConvolution:
    from byoc_mlir.kernels.integer_gemm.convolution import IntegerConvolution
    from byoc_mlir.kernels.integer_gemm.epilogue import IntegerEpilogue

    shape, windows = _BYTES_SHAPE, ((1, 1), (1, 1), (1, 1), (0, 0), (0, 0))
    unit = unit.for_outputs(shape[3])
    return IntegerConvolution(unit, shape, False, 0, shape[3], *windows, IntegerEpilogue("bytes"))


def _rounded() -> list[float]:
    """Returns the milliseconds of a `bf16` depthwise convolution and of interleaving planes."""
    kernel, planes = _depthwise(), interleave_code(*_PLANES)
    assert planes is not None
    code, elements = kernel.code(1), math.prod(_PLANES)
    image = {Slot.SOURCE: _filled(elements), Slot.RESULT: _filled(elements)}
    with _native({"depthwise": code, "interleaved": planes}) as functions:
        return _shortest(
            [
                _LoadedKernel(functions["depthwise"], _memory(kernel, code)),
                _LoadedKernel(functions["interleaved"], _with_words(image, planes)),
            ]
        )


def _rounded_calibration(times: Sequence[float]) -> RoundedCalibration:
    products, elements = _depthwise().convolution.products, math.prod(_PLANES)
    return RoundedCalibration(products / times[0], elements / times[1])


def _depthwise() -> ConvolutionKernel:
    it = _convolution(256, 14, window=3)
    return _kernel(replace(it, groups=it.inputs, element=bf16), "depthwise")


def _activations() -> list[float]:
    """Returns the milliseconds of each activation."""
    codes = {name: activation_code(name, _ELEMENTS) for name in FORMULAS}
    result = {Slot.RESULT: _filled(_ELEMENTS)}
    with _native(codes) as functions:
        return _shortest(
            [
                _LoadedKernel(functions[name], _with_words(result, code))
                for name, code in codes.items()
            ]
        )


def _activation_calibration(times: Sequence[float]) -> ActivationCalibration:
    return ActivationCalibration(
        **{name: _ELEMENTS / time for name, time in zip(FORMULAS, times, strict=True)}
    )


BENCHMARKS: Mapping[type[Table], Benchmark] = {
    ConvolutionCalibration: Benchmark(_convolutions, _convolution_calibration),
    IntegerCalibration: Benchmark(_integers, _integer_calibration),
    RoundedCalibration: Benchmark(_rounded, _rounded_calibration, "avx512_bf16"),
    ActivationCalibration: Benchmark(_activations, _activation_calibration),
}


_Function: TypeAlias = "Callable[[Any], None]"
"""Function that is called with slots: a kernel, or its preparation."""


@dataclass(frozen=True)
class _LoadedKernel:
    """Kernel with memory for its slots, ready to run."""

    function: _Function
    held: Mapping[Slot, NDArray[Any]]
    before: _Function | None = None
    """Function that is called with the same slots before each timed run."""

    def milliseconds(self) -> float:
        """Returns the thread's CPU time of one run, in milliseconds."""
        slots, clock = self._slots, thread_clock()
        self.function(slots)  # finds the caches as another kernel left them
        if self.before is not None:
            self.before(slots)
        start = clock()
        self.function(slots)
        return (clock() - start) * 1e3

    @cached_property
    def _slots(self) -> Any:
        addresses = (self.held[slot].ctypes.data if slot in self.held else None for slot in Slot)
        return (ctypes.c_void_p * len(Slot))(*addresses)


def _shortest(runs: Sequence[_LoadedKernel]) -> list[float]:
    """Returns the milliseconds of each kernel's second shortest run, since clocks sometimes
    jump.
    """
    times = [list[float]() for _ in runs]
    begin = time.thread_time()
    while not all(map(_is_stable, times)) and time.thread_time() - begin < _SECONDS:
        for run, taken in zip(runs, times, strict=True):
            taken.append(run.milliseconds())
    return [nsmallest(2, taken)[-1] for taken in times]


def _is_stable(times: Sequence[float]) -> bool:
    shortest = nsmallest(_ALIKE, times)
    return len(shortest) == _ALIKE and shortest[-1] <= _SPREAD * shortest[0]


def _rest(whole: float, known: float) -> float:
    """Returns the time of a run minus its `known` part, but at least a small share of the run."""
    return max(whole - known, _LEAST_SHARE * whole)


def _convolution(channels: int, pixels: int, window: int) -> Convolution:
    image, padding = Image((1, channels, pixels, pixels), channels), window // 2
    sizes, ones, pads = (window, window), (1, 1), (padding, padding)
    return Convolution(image, image, sizes, ones, ones, pads, pads, Epilogue())


def _winograd(channels: int, pixels: int) -> Winograd:
    kernel = _kernel(_convolution(channels, pixels, window=3), "f4x3")
    assert isinstance(kernel, Winograd)
    return kernel


def _kernel(convolution: Convolution, name: str) -> ConvolutionKernel:
    unit = VectorUnit.of(Cpu.host().features)
    return next(one for one in convolution_kernels(convolution, unit) if one.name == name)


def _memory(kernel: ConvolutionKernel, code: KernelCode) -> Mapping[Slot, NDArray[Any]]:
    """Returns the memory for each slot of a kernel."""
    it = kernel.convolution
    held = {
        Slot.WORKSPACE: _filled(kernel.workspace_bytes(1) // 4),
        Slot.SOURCE: _filled(operator.index(math.prod(it.source.shape))),
        Slot.RESULT: _filled(operator.index(math.prod(it.result.shape))),
        Slot.WEIGHTS: _filled(math.prod(kernel.weights_shape)),
    }
    return _with_words(held, code)


def _with_words(held: Mapping[Slot, NDArray[Any]], code: KernelCode) -> Mapping[Slot, NDArray[Any]]:
    return {**held, Slot.PARAMETERS: np.array(code.numbers, np.int64)}


def _filled(elements: int) -> NDArray[np.float32]:
    """Returns an array of normal values, aligned to a cache line."""
    buffer = np.full(elements + _LINE, 2.0**-10, np.float32)
    first = -buffer.ctypes.data // buffer.itemsize % _LINE
    return buffer[first : first + elements]


@contextmanager
def _native(codes: Mapping[str, KernelCode]) -> Generator[Mapping[str, _Function]]:
    """Yields kernels as functions that run on one thread."""
    module = ModuleBuilder(has_threads=False)
    for name, code in codes.items():
        function = module.function(name, (POINTER,), result=VOID)
        function.do(code.define(module), function.parameters[0])
        function.finish()
    MarkVectorisedFunctions().apply(Context(), module.module)  # as in a program
    symbols = {name: resolve_symbol(name, ()) for name in external_functions(module.module)}
    with NativeModule(emit_objects(module.module), list(codes), symbols) as native:
        yield {name: _FUNCTION(native.address(name)) for name in codes}


_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
