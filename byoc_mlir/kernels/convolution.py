"""Convolution kernels: the problem, the memory layout of its tensors, the calling convention."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from byoc_mlir.dialects.relay.constant import Weight, derived_array
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size
from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import FEWEST_LANES, VectorUnit

Pair = tuple[int, int]
"""Sizes along height and width."""

S = TypeVar("S", int, Size)
T = TypeVar("T")
D = TypeVar("D", bound=np.generic)


def pair_of(sizes: Sequence[S], missing: S) -> tuple[S, S]:
    """Returns sizes as (height, width); a single spatial size is the width, after `missing`."""
    first, second = (missing, *sizes)[-2:]
    return first, second


def planes(weights: NDArray[D]) -> NDArray[D]:
    """Returns weights as `[O, I, H, W]`; one-dimensional weights `[O, I, W]` get height 1."""
    outputs, channels, *window = weights.shape
    return weights.reshape(outputs, channels, *pair_of(window, 1))


def result_sizes(sizes: tuple[S, S], window: Pair, strides: Pair, dilation: Pair) -> tuple[S, S]:
    """Returns the result's height and width; the source `sizes` include the padding."""
    height, width = (
        (size - spread * (extent - 1) - 1) // stride + 1
        for size, extent, stride, spread in zip(sizes, window, strides, dilation, strict=True)
    )
    return height, width


def are_few_channels(channels: int, groups: int) -> bool:
    """True if a pixel's channels do not fill a vector, and there is one group, as for RGB
    images.
    """
    return groups == 1 and channels < FEWEST_LANES


@dataclass(frozen=True)
class Strides:
    """Strides in elements: between images, channel vectors, rows and pixels."""

    image: Size
    vector: Size
    line: Size
    pixel: int


@dataclass(frozen=True)
class Image:
    """Tensor `[N, C, H, W]` that is stored in memory as `[N, C / block, H, W, block]`.

    All sizes except the channels may be symbolic.
    """

    shape: tuple[Size, int, Size, Size]
    block: int
    """Channels of a block; all channels in NHWC."""

    @property
    def is_channels_last(self) -> bool:
        """True if all channels of a pixel are adjacent in memory (NHWC)."""
        return self.block == self.shape[1]

    @property
    def is_symbolic(self) -> bool:
        """True if any size is symbolic."""
        return not all(isinstance(size, int) for size in self.shape)

    def has_vectors(self, lanes: int) -> bool:
        """True if the channels form whole vectors of `lanes` channels at equal distances."""
        return self.shape[1] % lanes == 0 and self.block in (self.shape[1], lanes)

    def strides(self, lanes: int) -> Strides:
        """Returns the strides of the image's vectors of `lanes` channels."""
        _, channels, height, width = self.shape
        vector = lanes if self.is_channels_last else lanes * height * width
        return Strides(channels * height * width, vector, width * self.block, self.block)

    def exchanged(self) -> Image:
        """Returns the image with height and width exchanged.

        Valid only if height or width is 1: the memory is the same then.
        """
        batch, channels, height, width = self.shape
        return Image((batch, channels, width, height), self.block)


@dataclass(frozen=True)
class Convolution:
    """Convolution with its fused epilogue."""

    source: Image
    result: Image
    window: Pair
    strides: Pair
    dilation: Pair
    begins: Pair
    ends: Pair
    """Padding after the source; `begins` is the padding before it."""
    epilogue: Epilogue
    groups: int = 1
    element: Attribute = f32
    """Element type of source, result and residual."""

    @property
    def inputs(self) -> int:
        """Returns the number of input channels."""
        return self.source.shape[1]

    @property
    def has_few_channels(self) -> bool:
        """True if `are_few_channels` holds for the source."""
        return are_few_channels(self.inputs, self.groups)

    @property
    def outputs(self) -> int:
        """Returns the number of output channels."""
        return self.result.shape[1]

    @property
    def depth(self) -> int:
        """Returns the number of MACs for each element of the result."""
        return self.inputs // self.groups * math.prod(self.window)

    @property
    def products(self) -> int:
        """Returns the MACs of a direct algorithm, with the hints of symbolic sizes."""
        return hint(math.prod(self.result.shape)) * self.depth

    @property
    def is_padded(self) -> bool:
        """True if windows reach beyond the source."""
        return any((*self.begins, *self.ends))

    @property
    def is_one_pixel_wide(self) -> bool:
        """True if source, result and window are one pixel wide."""
        widths = (self.source.shape[3], self.result.shape[3], self.window[1])
        return widths == (1, 1, 1)

    def exchanged(self) -> Convolution:
        """Returns the convolution with height and width exchanged."""
        return replace(
            self,
            source=self.source.exchanged(),
            result=self.result.exchanged(),
            window=self.window[::-1],
            strides=self.strides[::-1],
            dilation=self.dilation[::-1],
            begins=self.begins[::-1],
            ends=self.ends[::-1],
        )


@dataclass(frozen=True)
class Windows(Generic[T]):
    """Geometry of a convolution's windows, in source pixels, as parameters of a kernel."""

    stride_y: T
    stride_x: T
    dilation_y: T
    dilation_x: T
    top: T
    left: T
    """Padding left of the source; `top` is the padding above it."""
    height: T
    width: T
    """Width of the source; `height` is its height."""

    @staticmethod
    def of(convolution: Convolution) -> Windows[Size]:
        """Returns the windows of a convolution."""
        it = convolution
        return Windows[Size](*it.strides, *it.dilation, *it.begins, *it.source.shape[2:])


class Slot(IntEnum):
    """Slots of the pointers that a kernel gets; a null pointer stands for an absent argument."""

    WORKSPACE = 0
    WEIGHTS = 1
    SOURCE = 2
    RESULT = 3
    BIAS = 4
    RESIDUAL = 5
    PARAMETERS = 6
    """Slot of the kernel's parameters, 8-byte words."""


def read_parameters(function: FunctionBuilder, slots: SSAValue, description: type[T]) -> T:
    """Generates the loads of a kernel's parameters from its slots, as `read` does."""
    return read(function, function.pointer(slots, Slot.PARAMETERS), description)


@dataclass(frozen=True)
class KernelCode:
    """Function `void (slots)` of a kernel, and the values of its run-time parameters."""

    define: Callable[[ModuleBuilder], str]
    """Function that defines the kernel in a module, unless the module has it, and returns its
    symbol."""
    words: tuple[Size, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Returns the words as integers.

        Raises:
            UndecidedSizeError: a size is symbolic.
        """
        return tuple(map(operator.index, self.words))


class ConvolutionKernel(ABC):
    """Algorithm that computes a convolution with constant weights."""

    convolution: Convolution
    unit: VectorUnit

    @property
    @abstractmethod
    def name(self) -> str:
        """Returns the algorithm's name in IR and reports."""

    @property
    def tilings(self) -> Mapping[str, ConvolutionKernel]:
        """Returns variants with other tiles, by name; only measuring shows which one is fastest."""
        return {}

    @property
    def is_heavy(self) -> bool:
        """True if the packed weights take more memory than their few uses justify."""
        return False

    @property
    def panels(self) -> int:
        """Returns the number of weight panels; in the last one, zeros fill the columns after the
        last output.
        """
        return -(-self.convolution.outputs // self.unit.panel)

    @abstractmethod
    def milliseconds(self, direct: float, threads: int) -> float:
        """Estimates the run time in milliseconds, with the hints of symbolic sizes.

        Args:
            direct: milliseconds of a direct algorithm at the same MAC rate.
            threads: number of OpenMP threads.
        """

    @abstractmethod
    def code(self, threads: int) -> KernelCode:
        """Returns the code for `threads` threads."""

    @property
    @abstractmethod
    def weights_shape(self) -> tuple[int, ...]:
        """Returns the shape of the packed weights."""

    @abstractmethod
    def pack(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """Packs weights `[O, I / groups, H, W]` for the code."""

    @property
    @abstractmethod
    def packing(self) -> Hashable:
        """Returns a key that two kernels share if and only if they pack weights in the same way."""

    def workspace_bytes(self, threads: int) -> int:
        """Returns the bytes of workspace that the kernel needs on `threads` threads."""
        return 0

    def packed(self, weight: Weight) -> Weight:
        """Packs a weight, once for all kernels with this packing."""
        array = derived_array(self.packing, [weight.data], lambda: self.pack(weight.data))
        return Weight.of(f"{weight.name}.{self.name}", array)


def panel_of(weights: NDArray[np.float32], number: int, columns: int) -> NDArray[np.float32]:
    """Returns panel `number`, `columns` outputs of the weights `[O, I, H, W]`, as `[H, W, I,
    columns]`.

    Zeros fill the columns after the last output.
    """
    some = weights[number * columns : (number + 1) * columns]
    panel = np.zeros((*some.shape[2:], some.shape[1], columns), np.float32)
    panel[..., : len(some)] = some.transpose(2, 3, 1, 0)
    return panel
