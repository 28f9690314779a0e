"""What a convolution kernel is asked for, how its tensors lie in memory, and how it is called."""

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
from xdsl.ir import Attribute

from byoc_mlir.dialects.relay.constant import Weight, derived_array
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dims import Size
from byoc_mlir.kernels.epilogue import Epilogue
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.vectors import FEWEST_LANES, VectorUnit

Pair = tuple[int, int]
"""Along height and width."""

S = TypeVar("S", int, Size)
T = TypeVar("T")
D = TypeVar("D", bound=np.generic)


def pair_of(sizes: Sequence[S], missing: S) -> tuple[S, S]:
    """Those of an image; one of one dimension is a line."""
    first, second = (missing, *sizes)[-2:]
    return first, second


def planes(weights: NDArray[D]) -> NDArray[D]:
    """Weights `[O, I, H, W]`; those of one dimension, `[O, I, W]`, are lines."""
    outputs, channels, *window = weights.shape
    return weights.reshape(outputs, channels, *pair_of(window, 1))


def result_sizes(sizes: tuple[S, S], window: Pair, strides: Pair, dilation: Pair) -> tuple[S, S]:
    """How many places a window has within these sizes, padding included."""
    height, width = (
        (size - spread * (extent - 1) - 1) // stride + 1
        for size, extent, stride, spread in zip(sizes, window, strides, dilation, strict=True)
    )
    return height, width


def are_few_channels(channels: int, groups: int) -> bool:
    """Whether a pixel fills no vector: images of colours, all of whose channels are summed."""
    return groups == 1 and channels < FEWEST_LANES


@dataclass(frozen=True)
class Strides:
    """Elements from image to image, vector to vector, line to line and pixel to pixel."""

    image: Size
    vector: Size
    line: Size
    pixel: int


@dataclass(frozen=True)
class Image:
    """A tensor `[N, C, H, W]` that is stored as `[N, C / block, H, W, block]`.

    All but the channels may be symbolic.
    """

    shape: tuple[Size, int, Size, Size]
    block: int
    """All channels where they are last."""

    @property
    def is_channels_last(self) -> bool:
        """Whether all channels of a pixel lie together."""
        return self.block == self.shape[1]

    @property
    def is_symbolic(self) -> bool:
        """Whether some of its sizes are no numbers."""
        return not all(isinstance(size, int) for size in self.shape)

    def has_vectors(self, lanes: int) -> bool:
        """Whether it is made of vectors of so many channels at equal distances."""
        return self.shape[1] % lanes == 0 and self.block in (self.shape[1], lanes)

    def strides(self, lanes: int) -> Strides:
        """Those of its vectors."""
        _, channels, height, width = self.shape
        vector = lanes if self.is_channels_last else lanes * height * width
        return Strides(channels * height * width, vector, width * self.block, self.block)

    def exchanged(self) -> Image:
        """The image with height and width exchanged; where one of them is 1, the same memory."""
        batch, channels, height, width = self.shape
        return Image((batch, channels, width, height), self.block)


@dataclass(frozen=True)
class Convolution:
    """A convolution, and what follows it."""

    source: Image
    result: Image
    window: Pair
    strides: Pair
    dilation: Pair
    begins: Pair
    ends: Pair
    """The padding."""
    epilogue: Epilogue
    groups: int = 1
    element: Attribute = f32
    """What source, result and residual are made of."""

    @property
    def inputs(self) -> int:
        """The channels of the source."""
        return self.source.shape[1]

    @property
    def has_few_channels(self) -> bool:
        """As `are_few_channels`, of the source."""
        return are_few_channels(self.inputs, self.groups)

    @property
    def outputs(self) -> int:
        """Those of the result."""
        return self.result.shape[1]

    @property
    def depth(self) -> int:
        """The products that a result is the sum of."""
        return self.inputs // self.groups * math.prod(self.window)

    @property
    def products(self) -> int:
        """The multiplications of a direct algorithm, for the hints of symbolic sizes."""
        return hint(math.prod(self.result.shape)) * self.depth

    @property
    def is_padded(self) -> bool:
        """Whether windows reach beyond the source."""
        return any((*self.begins, *self.ends))

    @property
    def is_one_pixel_wide(self) -> bool:
        """Whether images and window are columns of pixels."""
        widths = (self.source.shape[3], self.result.shape[3], self.window[1])
        return widths == (1, 1, 1)

    def exchanged(self) -> Convolution:
        """The convolution with height and width exchanged."""
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
    """Where the windows of a convolution lie, in pixels of the source: of a kernel's parameters."""

    stride_y: T
    stride_x: T
    dilation_y: T
    dilation_x: T
    top: T
    left: T
    """The padding before the source."""
    height: T
    width: T
    """Those of the source."""

    @staticmethod
    def of(convolution: Convolution) -> Windows[Size]:
        """Those of a convolution."""
        it = convolution
        return Windows[Size](*it.strides, *it.dilation, *it.begins, *it.source.shape[2:])


class Slot(IntEnum):
    """The pointers that a kernel is called with; null stands for memory that there is not."""

    WORKSPACE = 0
    WEIGHTS = 1
    SOURCE = 2
    RESULT = 3
    BIAS = 4
    RESIDUAL = 5
    PARAMETERS = 6
    """The words of its parameters."""


@dataclass(frozen=True)
class KernelCode:
    """A function `void (slots)`, and its parameters' words."""

    define: Callable[[ModuleBuilder], str]
    """Defines it in a module, unless it is there. Returns its symbol."""
    words: tuple[Size, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The words, where all sizes are numbers.

        Raises:
            UndecidedSizeError: some are symbolic.
        """
        return tuple(map(operator.index, self.words))


class ConvolutionKernel(ABC):
    """A way to compute a convolution with constant weights."""

    convolution: Convolution
    unit: VectorUnit

    @property
    @abstractmethod
    def name(self) -> str:
        """What IR and reports call the algorithm."""

    @property
    def tilings(self) -> Mapping[str, ConvolutionKernel]:
        """The same with other tiles, by name: only measuring tells which are faster."""
        return {}

    @property
    def is_heavy(self) -> bool:
        """Whether its weights are used so seldom that they cost more memory than they are worth."""
        return False

    @property
    def panels(self) -> int:
        """The columns of the weights, with zeros in the last where outputs end before it does."""
        return -(-self.convolution.outputs // self.unit.panel)

    @abstractmethod
    def milliseconds(self, direct: float, threads: int) -> float:
        """About what it takes, for the hints of symbolic sizes.

        Args:
            direct: the milliseconds of a direct algorithm that does as many products in a second.
            threads: those of OpenMP that run it.
        """

    @abstractmethod
    def code(self, threads: int) -> KernelCode:
        """What computes it on so many threads."""

    @property
    @abstractmethod
    def weights_shape(self) -> tuple[int, ...]:
        """That of the packed weights."""

    @abstractmethod
    def pack(self, weights: NDArray[np.float32]) -> NDArray[np.float32]:
        """The weights `[O, I / groups, H, W]` as the code reads them."""

    @property
    @abstractmethod
    def packing(self) -> Hashable:
        """What tells its packed weights from those of other kernels."""

    def workspace_bytes(self, threads: int) -> int:
        """The memory that it needs on so many threads."""
        return 0

    def packed(self, weight: Weight) -> Weight:
        """The packed weights; once for all uses of them."""
        array = derived_array(self.packing, [weight.data], lambda: self.pack(weight.data))
        return Weight.of(f"{weight.name}.{self.name}", array)


def panel_of(weights: NDArray[np.float32], number: int, columns: int) -> NDArray[np.float32]:
    """So many outputs of `[O, I, H, W]` as `[H, W, I, columns]`; zeros where there are no more."""
    some = weights[number * columns : (number + 1) * columns]
    panel = np.zeros((*some.shape[2:], some.shape[1], columns), np.float32)
    panel[..., : len(some)] = some.transpose(2, 3, 1, 0)
    return panel
