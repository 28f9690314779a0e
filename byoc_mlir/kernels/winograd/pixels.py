"""Conversion of pixels to the `f32` values that are transformed, and of sums to results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from xdsl.dialects.builtin import Float32Type, IntegerType, f32
from xdsl.ir import SSAValue

from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors
from byoc_mlir.kernels.winograd.parameters import WinogradParameters

Element: TypeAlias = "Float32Type | IntegerType"

Finishing: TypeAlias = "Callable[[SSAValue, SSAValue | None], SSAValue]"
"""Function that generates the vector to store from a sum and, if there is one, a residual."""


@dataclass(frozen=True)
class PixelSource:
    """Reader of source pixels in generated code."""

    padding: SSAValue
    """Vector of padding."""
    numbers: Callable[[SSAValue], SSAValue]
    """Function that converts a vector of pixels to `f32`."""


class Pixels(ABC):
    """Format of source, result and residual: vectors of one element type in memory."""

    element: ClassVar[Element]
    """Element type in memory."""

    @property
    @abstractmethod
    def has_residual(self) -> bool:
        """True if a residual of the result's shape may be added to the sums: none if its address is
        null.
        """

    @property
    @abstractmethod
    def of_source(self) -> str:
        """Returns a symbol suffix that distinguishes code for reading these pixels."""

    @property
    @abstractmethod
    def of_result(self) -> str:
        """Returns a symbol suffix that distinguishes code for writing these pixels."""

    @abstractmethod
    def source(self, vectors: Vectors, parameters: SSAValue) -> PixelSource:
        """Returns the reader of the source pixels of a convolution, given the address of its
        parameters.
        """

    @abstractmethod
    def result(
        self, vectors: Vectors, parameters: SSAValue, biases: SSAValue
    ) -> Callable[[SSAValue], Finishing]:
        """Returns a function that gives, for a channel vector's number, the code that finishes
        sums.

        `biases` is the pointer in the bias slot.
        """


@dataclass(frozen=True)
class FloatPixels(Pixels):
    """Pixels of `f32`: sums with a bias and a residual if there are any, clamped to two limits."""

    element = f32

    bias: bool

    @property
    def has_residual(self) -> bool:
        return True

    @property
    def of_source(self) -> str:
        return ""

    @property
    def of_result(self) -> str:
        return "_bias" * self.bias

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
