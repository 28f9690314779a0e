"""Cost-model parameters: every number that an estimate uses, with its unit and source.

*Calibration* tables are measured once on the target machine (`byoc_mlir.lowering.calibration`) and
stored; if measuring is disabled, assumed values replace them. *Assumptions* hold on any machine, or
matter too little to be measured. docs/dev-notes/costs.md lists all parameters and the decisions
that use them.
"""

from __future__ import annotations

from dataclasses import Field, asdict, dataclass, field, fields
from typing import Any, ClassVar, TypeVar

from byoc_mlir.calibration import Calibration, Measurement, current_calibration

_UNIT, _SOURCE = "unit", "source"


def _number(assumed: float, unit: str, source: str) -> float:
    """Declares a field of a table: its assumed value, its unit, and the source of its value."""
    return field(default=assumed, metadata={_UNIT: unit, _SOURCE: source})


@dataclass(frozen=True)
class Table:
    """Table of cost-model parameters of one kind."""

    name: ClassVar[str] = ""
    """Prefix of the table's measurements in the calibration."""

    @classmethod
    def of(cls: type[_Table], known: Calibration) -> _Table:
        """Returns the table with the known values, and assumed values for the rest.

        Raises:
            ByocError: a known value is not a number above 0.
        """
        found = {one.name: known.find(f"{cls.name}/{one.name}") for one in fields(cls)}
        return cls(**{name: one.number for name, one in found.items() if one is not None})

    def numbers(self) -> dict[str, float]:
        """Returns the values by name."""
        return asdict(self)

    def measurements(self) -> list[Measurement]:
        """Returns the values as measurements of the calibration store."""
        return [
            Measurement(f"{self.name}/{name}", unit, source, value)
            for name, value, unit, source in self.described()
        ]

    def described(self) -> list[tuple[str, float, str, str]]:
        """Returns name, value, unit and source of each parameter."""
        found: tuple[Field[Any], ...] = fields(self)
        return [
            (one.name, getattr(self, one.name), one.metadata[_UNIT], one.metadata[_SOURCE])
            for one in found
        ]


_Table = TypeVar("_Table", bound=Table)


@dataclass(frozen=True)
class ConvolutionCalibration(Table):
    """Rates of the built-in `f32` convolutions on one thread, with the longest vectors."""

    name: ClassVar[str] = "convolutions"

    products: float = _number(
        4.5e7, "MACs / ms", "a 1x1 convolution of 256 channels at 14 x 14, in cache"
    )
    transformed_bytes: float = _number(
        1.5e7, "bytes / ms", "F(4x4, 3x3) of 64 channels at 56 x 56, less its products"
    )
    weight_bytes: float = _number(
        2e7,
        "bytes / ms",
        "F(4x4, 3x3) of 256 channels at 14 x 14, weights from memory, less the rest",
    )


@dataclass(frozen=True)
class IntegerCalibration(Table):
    """MAC rates of the built-in int8 GEMMs without VNNI, on one thread."""

    name: ClassVar[str] = "integers"

    products: float = _number(
        7e7, "MACs / ms", "pairs of i16, a 1x1 convolution of 256 channels at 14 x 14"
    )
    bytes: float = _number(
        8.5e7, "MACs / ms", "packed 4-byte groups without overlap, the same convolution"
    )
    depthwise: float = _number(2e7, "MACs / ms", "depthwise 3x3, 256 channels at 14 x 14")


@dataclass(frozen=True)
class RoundedCalibration(Table):
    """Rates of the built-in `bf16` kernels, on one thread."""

    name: ClassVar[str] = "rounded"

    depthwise: float = _number(1.5e7, "MACs / ms", "depthwise 3x3, 256 channels at 14 x 14")
    interleaved: float = _number(
        3e6, "elements / ms", "three planes of 224 x 224 pixels of f32 to pixels of bf16"
    )


@dataclass(frozen=True)
class ActivationCalibration(Table):
    """Rates of activations that overwrite their operand, on one thread."""

    name: ClassVar[str] = "activations"

    swish: float = _number(2.2e6, "elements / ms", "32,768 elements, in cache")
    gelu_erf: float = _number(1.5e6, "elements / ms", "32,768 elements, in cache")
    gelu_tanh: float = _number(1.8e6, "elements / ms", "32,768 elements, in cache")


@dataclass(frozen=True)
class Assumptions(Table):
    """Parameters that are not measured, each with the reason."""

    thread_start: float = _number(
        0.003,
        "ms",
        "OpenMP threads that are awake; under load a measurement shows only their waiting",
    )
    thread_wake: float = _number(
        0.06, "ms", "OpenMP threads that sleep: 0.05 to 0.1 on virtual machines"
    )
    threads_spin: float = _number(
        0.08, "ms", "threads stay awake for so long: `SPIN_SECONDS` of runtime/system/spins.py"
    )
    parallel_cycles: float = _number(
        1 << 17,
        "cycles",
        "smallest host loop that pays for several threads: half the time to wake one",
    )
    loop_products: float = _number(16, "MACs / cycle", "two vectors of 8; decides on threads only")
    block_products: float = _number(
        8, "MACs / cycle", "weights of a few bits; decides on threads only"
    )
    integer_products: float = _number(64, "MACs / cycle", "int8 with VNNI; decides on threads only")
    streamed_bytes: float = _number(
        8,
        "bytes / cycle",
        "data that loops read and write once, or a matrix for few rows; decides on threads only",
    )
    cached_bytes: float = _number(
        1.5,
        "bytes / MAC",
        "a matrix in L2 or L3 that one row reads, in the time of `products`",
    )
    loop_iterations: float = _number(
        12, "iterations / cycle", "vectorised, in cache; decides on threads only"
    )
    tree_step: float = _number(3, "cycles", "dependent loads, for several rows at once")
    primitive_call: float = _number(0.004, "ms", "any execution of a library's primitive")
    region_work: float = _number(
        10_000, "operations", "single ops timed both ways break even between 4,000 and 16,000"
    )
    kernel_code: float = _number(
        0.02, "ms", "saving that justifies half a second of LLVM for a kernel's code"
    )
    estimate_margin: float = _number(
        0.9, "of the library's time", "an estimate is right within a tenth"
    )
    place_margin: float = _number(
        0.65, "of the other place's time", "estimates of a region are mostly right within a fifth"
    )
    layout_margin: float = _number(
        0.85, "of the other layout's time", "two measurements of one thing differ by as much"
    )
    split_margin: float = _number(
        0.95, "of the fused op's time", "the second pass finds the caches as the first left them"
    )
    waiting_margin: float = _number(
        0.7,
        "of the time on all threads",
        "threads wait for each other at each step of a layer",
    )


ASSUMED = Assumptions()

MEASURED: tuple[type[Table], ...] = (
    ConvolutionCalibration,
    IntegerCalibration,
    RoundedCalibration,
    ActivationCalibration,
)
"""Calibration tables."""


def calibration(kind: type[_Table]) -> _Table:
    """Returns a calibration table: from the compilation's calibration file, from the store, or from
    new measurements.
    """
    return current_calibration().view(kind.of)
