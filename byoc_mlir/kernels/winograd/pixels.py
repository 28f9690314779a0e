"""How pixels become the numbers that are transformed, and what is stored of results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import Float32Type, IntegerType, f32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors
from byoc_mlir.kernels.winograd.parameters import WinogradParameters

Element: TypeAlias = "Float32Type | IntegerType"

Finishing: TypeAlias = "Callable[[SSAValue, SSAValue | None], SSAValue]"
"""What makes of sums, and of the residuals that are added, what is stored."""


@dataclass(frozen=True)
class PixelSource:
    """Pixels, in the code that reads them."""

    padding: SSAValue
    """A vector as it is around the image."""
    numbers: Callable[[SSAValue], SSAValue]
    """The numbers of a vector."""


class Pixels(ABC):
    """Those of a source, a result and a residual: vectors of one element in memory."""

    @property
    @abstractmethod
    def element(self) -> Element:
        """A number in memory."""

    @property
    @abstractmethod
    def has_residual(self) -> bool:
        """Whether something is added to sums that is as large as the result."""

    @property
    @abstractmethod
    def of_source(self) -> str:
        """What tells code apart that reads them."""

    @property
    @abstractmethod
    def of_result(self) -> str:
        """What tells code apart that writes them."""

    @abstractmethod
    def source(self, vectors: Vectors, parameters: SSAValue) -> PixelSource:
        """Those of a convolution with the parameters at an address."""

    @abstractmethod
    def result(
        self, vectors: Vectors, parameters: SSAValue, biases: SSAValue
    ) -> Callable[[SSAValue], Finishing]:
        """What is done with a vector of each pixel's channels, by its number; `biases` is what
        stands in that slot."""


@dataclass(frozen=True)
class FloatPixels(Pixels):
    """Numbers: sums with a bias and a residual between two limits."""

    bias: bool
    residual: bool

    @property
    def element(self) -> Element:
        return f32

    @property
    def has_residual(self) -> bool:
        return self.residual

    @property
    def of_source(self) -> str:
        return ""

    @property
    def of_result(self) -> str:
        return "_bias" * self.bias + "_sum" * self.residual

    def source(self, vectors: Vectors, parameters: SSAValue) -> PixelSource:
        return PixelSource(vectors.splat(0.0), lambda numbers: numbers)

    def result(
        self, vectors: Vectors, parameters: SSAValue, biases: SSAValue
    ) -> Callable[[SSAValue], Finishing]:
        function = vectors.function
        told = read(function, parameters, WinogradParameters[SSAValue])
        lower, upper = (vectors.broadcast_bits(one) for one in (told.lower, told.upper))

        def of_channels(vector: SSAValue) -> Finishing:
            added: list[SSAValue] = []
            if self.bias:
                place = function.gep(biases, function.multiply(vector, vectors.lanes))
                added.append(vectors.load(place))

            def finished(total: SSAValue, residual: SSAValue | None) -> SSAValue:
                for one in (*added, *(() if residual is None else (residual,))):
                    total = vectors.add(total, one)
                return vectors.clamp(total, lower, upper)

            return finished

        return of_channels
