"""Runner of convolution kernels: compiles them and calls them with numpy arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from helpers.verified import verify_module
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import Attribute

from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.kernels.builder import VOID
from byoc_mlir.kernels.convolution import Convolution, ConvolutionKernel, Image, KernelCode, Slot
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.ops import POINTER
from byoc_mlir.kernels.schedules import Scheduled
from byoc_mlir.lowering.llvm_ir.codegen import emit_objects
from byoc_mlir.lowering.mark_vectorised_functions import MarkVectorisedFunctions
from byoc_mlir.lowering.symbols import external_functions
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.system.libraries import find_openmp, load_library, resolve_symbol

Array = NDArray[np.float32]

_ALIGNMENT = 64
_FLOATS = np.dtype(np.float32)


def convolution(
    source: tuple[int, int, int, int],
    outputs: int,
    window: tuple[int, int] = (3, 3),
    *,
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    strides: tuple[int, int] = (1, 1),
    dilation: tuple[int, int] = (1, 1),
    block: int = 0,
    epilogue: Epilogue | None = None,
    groups: int = 1,
    element: Attribute = f32,
) -> Convolution:
    """Returns a convolution in NHWC, or in a blocked layout if `block` is given."""
    batch, channels, *sizes = source
    top, left, bottom, right = pads
    height, width = (
        (size + before + after - spread * (extent - 1) - 1) // stride + 1
        for size, before, after, spread, extent, stride in zip(
            sizes, (top, left), (bottom, right), dilation, window, strides, strict=True
        )
    )
    return Convolution(
        Image(source, block or channels),
        Image((batch, outputs, height, width), block or outputs),
        window,
        strides,
        dilation,
        (top, left),
        (bottom, right),
        epilogue or Epilogue(),
        groups,
        element,
    )


class Native:
    """Code of a kernel as a function of its slots.

    Args:
        is_told: if true, the code gets its parameters, else wrong ones, which it must not read.
    """

    def __init__(self, code: KernelCode, *, is_told: bool = True):
        module = ModuleBuilder()
        function = module.function("main", (POINTER,), result=VOID)
        function.call("omp_get_num_threads", result=i32)
        function.do(code.define(module), function.parameters[0])
        function.finish()
        verify_module(module.module)
        MarkVectorisedFunctions().apply(Context(), module.module)  # as in a program
        library = find_openmp()
        assert library is not None
        handles = [load_library(library)]
        names = external_functions(module.module)
        symbols = {name: resolve_symbol(name, handles) for name in names}
        self._native = NativeModule(emit_objects(module.module), ["main"], symbols)
        self._main = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._native.address("main"))
        self.tell(code.numbers if is_told else [-1] * len(code.words))

    def tell(self, words: Sequence[int]) -> None:
        """Sets the parameters."""
        self._words = np.array(words, np.int64)

    def run(self, given: Mapping[int, NDArray[Any]]) -> None:
        """Runs the code on the slots and its parameters."""
        held: dict[int, NDArray[Any]] = {**given, Slot.PARAMETERS: self._words}
        slots = range(max(*Slot, *held) + 1)
        pointers = [held[slot].ctypes.data if slot in held else None for slot in slots]
        self._main((ctypes.c_void_p * len(pointers))(*pointers))


class Compiled:
    """Kernel as native code.

    Args:
        in_place: if true, the result is written over the residual.
        native: the code, if there is one already.
    """

    def __init__(
        self,
        kernel: ConvolutionKernel | Scheduled,
        threads: int = 1,
        *,
        in_place: bool = False,
        native: Native | None = None,
    ):
        scheduled = kernel if isinstance(kernel, Scheduled) else Scheduled(kernel)
        self._kernel, self._threads, self._in_place = scheduled.kernel, threads, in_place
        is_told = not scheduled.has_constants
        self._native = native or Native(scheduled.code(threads), is_told=is_told)

    def __call__(self, **arrays: Array) -> Array:
        """Returns the result `[N, C, H, W]` for `x`, `w` and the epilogue's operands `b`, `r`."""
        result = self._kernel.convolution.result
        written = aligned(tuple(int(size) for size in result.shape), self._dtype)
        held = self.memory(written, **arrays)
        if self._in_place:
            written[...] = held[Slot.RESIDUAL].reshape(written.shape)
            held[Slot.RESIDUAL] = written
        self.run(held)
        return _as_planes(written, result).astype(np.float32)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return numpy_dtype(self._kernel.convolution.element)

    def memory(self, written: Array, **arrays: Array) -> dict[int, NDArray[Any]]:
        """Returns the arrays of the slots, in the kernel's layouts."""
        it = self._kernel.convolution
        workspace = self._kernel.workspace_bytes(self._threads)
        held: dict[int, NDArray[Any]] = {
            Slot.WORKSPACE: aligned((workspace // 4,)),
            Slot.WEIGHTS: _copied(self._kernel.pack(arrays["w"])),
            Slot.SOURCE: _copied(_as_stored(arrays["x"], it.source), self._dtype),
            Slot.RESULT: written,
        }
        if it.epilogue.bias:
            columns = self._kernel.unit.panel
            bias = np.zeros(-(-it.outputs // columns) * columns, np.float32)
            bias[: it.outputs] = arrays["b"]
            held[Slot.BIAS] = bias
        if it.epilogue.residual:
            held[Slot.RESIDUAL] = _copied(_as_stored(arrays["r"], it.result), self._dtype)
        return held

    def run(self, held: Mapping[int, NDArray[Any]]) -> None:
        """Calls the code."""
        self._native.run(held)


@dataclass(frozen=True)
class DepthwiseCase:
    """Image and windows of a depthwise convolution."""

    size: tuple[int, int]
    window: tuple[int, int]
    pads: tuple[int, int, int, int]
    strides: tuple[int, int]
    dilation: tuple[int, int]

    def of(self, channels: int, epilogue: Epilogue, element: Attribute = f32) -> Convolution:
        """Returns the convolution of two images of `channels` channels."""
        return convolution(
            (2, channels, *self.size),
            channels,
            self.window,
            pads=self.pads,
            strides=self.strides,
            dilation=self.dilation,
            epilogue=epilogue,
            groups=channels,
            element=element,
        )


DEPTHWISE_CASES = (
    DepthwiseCase((7, 7), (3, 3), (1, 1, 1, 1), (1, 1), (1, 1)),
    DepthwiseCase((9, 17), (3, 3), (0, 0, 1, 1), (2, 2), (1, 1)),
    DepthwiseCase((5, 16), (5, 3), (4, 2, 3, 1), (1, 2), (2, 1)),
    DepthwiseCase((1, 30), (1, 9), (0, 4, 0, 4), (1, 1), (1, 1)),
    DepthwiseCase((2, 1), (3, 3), (5, 4, 4, 5), (1, 1), (1, 3)),
)
"""Cases: windows that reach beyond the image at every side, or lie outside; strips of two lengths.
"""


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any] = _FLOATS) -> NDArray[Any]:
    """Returns memory aligned to a cache line, filled with NaN."""
    size, item = int(np.prod(shape)), dtype.itemsize
    buffer = np.full(size + _ALIGNMENT // item, np.nan, dtype)
    first = -buffer.ctypes.data % _ALIGNMENT // item
    return buffer[first : first + size].reshape(shape)


def _copied(array: Array, dtype: np.dtype[Any] = _FLOATS) -> NDArray[Any]:
    copy = aligned(array.shape, dtype)
    copy[...] = array
    return copy


def _as_stored(array: Array, image: Image) -> Array:
    batch, channels, height, width = image.shape
    blocks = array.reshape(batch, channels // image.block, image.block, height, width)
    return blocks.transpose(0, 1, 3, 4, 2)


def _as_planes(stored: NDArray[Any], image: Image) -> NDArray[Any]:
    batch, channels, height, width = image.shape
    blocks = stored.reshape(batch, channels // image.block, height, width, image.block)
    return blocks.transpose(0, 1, 4, 2, 3).reshape(image.shape)


def expected(it: Convolution, **arrays: Array) -> NDArray[np.float64]:
    """Returns the result in `f64`, by its definition."""
    (top, left), (bottom, right) = it.begins, it.ends
    x = np.pad(arrays["x"].astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    height, width = it.result.shape[2:]
    total = np.zeros(it.result.shape)
    for y in range(it.window[0]):
        for z in range(it.window[1]):
            lines = slice(y * it.dilation[0], None, it.strides[0])
            pixels = slice(z * it.dilation[1], None, it.strides[1])
            read = x[:, :, lines, pixels][:, :, :height, :width]
            total += _products(read, arrays["w"][:, :, y, z].astype(np.float64), it.groups)
    if it.epilogue.bias:
        total += arrays["b"][:, None, None]
    if it.epilogue.residual:
        total += arrays["r"]
    return total.clip(it.epilogue.lower, it.epilogue.upper)


def _products(
    read: NDArray[np.float64], weights: NDArray[np.float64], groups: int
) -> NDArray[np.float64]:
    """Returns the contribution of one kernel tap to all results."""
    batch, _, height, width = read.shape
    grouped = read.reshape(batch, groups, -1, height, width)
    found = np.einsum("ngihw,goi->ngohw", grouped, weights.reshape(groups, -1, weights.shape[1]))
    return found.reshape(batch, -1, height, width)


def random_arrays(it: Convolution) -> dict[str, Array]:
    """Returns arguments for `Compiled` and `expected`."""
    generator = np.random.default_rng(0)
    shapes = {
        "x": it.source.shape,
        "w": (it.outputs, it.inputs // it.groups, *it.window),
        "b": (it.outputs,),
        "r": it.result.shape,
    }
    return {
        name: generator.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()
    }
