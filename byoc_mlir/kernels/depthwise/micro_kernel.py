"""The results of some pixels next to each other, of all channels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.depthwise.parameters import Parameters
from byoc_mlir.kernels.epilogue import Limits
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.parameters import read
from byoc_mlir.kernels.vectors import Vectors

PREFIX = "byoc_depthwise"

TYPES = (POINTER, POINTER, i64, i64, *(POINTER,) * 5)
"""The parameters; the window of the first pixel, where it begins in its line, how many of its lines
lie in the image; weights, bias, zeros, result; the residual, or null."""


@dataclass(frozen=True)
class Variant:
    """What the code depends on."""

    lanes: int
    pixels: int
    """Those of a kernel; some kernels take one less."""
    columns: int
    """The width of the window."""
    stride: int
    dilation: int
    residual: bool
    limits: Limits

    @property
    def suffix(self) -> str:
        """What tells the functions of variants apart."""
        window = f"{self.columns}s{self.stride}d{self.dilation}"
        return f"{self.pixels}x{self.lanes}_{window}" + "_sum" * self.residual + f"_{self.limits}"

    @property
    def places(self) -> tuple[int, ...]:
        """The pixels of the source that are read, counted from the first one's window."""
        columns, pixels = range(self.columns), range(self.pixels)
        return tuple(sorted({self.place(pixel, column) for pixel in pixels for column in columns}))

    def place(self, pixel: int, column: int) -> int:
        """What a result reads in a column of its window."""
        return pixel * self.stride + column * self.dilation


def define_kernel(module: ModuleBuilder, variant: Variant, *, padded: bool) -> str:
    """`void (parameters, source, x, lines, weights, bias, zeros, result, residual)`.

    Args:
        padded: whether windows may reach beyond the line, where zeros are read.
    """
    name = f"{PREFIX}_kernel_{variant.suffix}" + "_padded" * padded
    if module.has(name):
        return name
    function = module.function(name, TYPES, result=VOID, internal=True)
    address, source, x, lines, *pointers = function.parameters
    parameters = read(function, address, Parameters[SSAValue])
    *_, zeros, _, _ = pointers
    strip = _Strip(function, variant, parameters, lines, *pointers)
    strip.write(_sources(function, variant, parameters, source, x if padded else None, zeros))
    function.finish()
    return name


@dataclass(frozen=True)
class _Source:
    """A pixel in the first line of the windows, and the way to the next line."""

    address: SSAValue
    step: SSAValue


def _sources(
    function: FunctionBuilder,
    variant: Variant,
    parameters: Parameters[SSAValue],
    source: SSAValue,
    x: SSAValue | None,
    zeros: SSAValue,
) -> Mapping[int, _Source]:
    """What is read at each place; given where the first window begins, zeros beyond the line."""
    found: dict[int, _Source] = {}
    nothing = function.integer(0)
    for place in variant.places:
        address = function.gep(source, function.multiply(parameters.source_pixel, place))
        step = parameters.window_line
        if x is not None:
            is_inside = function.compare("ult", function.add(x, place), parameters.windows.width)
            address = function.select(is_inside, address, zeros)
            step = function.select(is_inside, step, nothing)
        found[place] = _Source(address, step)
    return found


@dataclass(frozen=True)
class _Strip:
    """Writes the code of some pixels."""

    function: FunctionBuilder
    variant: Variant
    parameters: Parameters[SSAValue]
    lines: SSAValue
    weights: SSAValue
    bias: SSAValue
    zeros: SSAValue
    result: SSAValue
    residual: SSAValue

    def write(self, sources: Mapping[int, _Source]) -> None:
        """A loop over the vectors of the channels."""
        function, parameters, variant = self.function, self.parameters, self.variant
        vectors = Vectors(function, variant.lanes)
        limit = vectors.limiter(variant.limits, parameters.lower, parameters.upper)

        def vector(index: SSAValue) -> None:
            channel = function.multiply(index, variant.lanes)
            weights = function.gep(self.weights, function.multiply(index, parameters.window))
            sums = self._sums(vectors, sources, channel, weights)
            self._write_results(vectors, channel, sums, limit)

        function.loop(parameters.vectors, vector)

    def _sums(
        self,
        vectors: Vectors,
        sources: Mapping[int, _Source],
        channel: SSAValue,
        weights: SSAValue,
    ) -> Sums:
        """Those of each pixel, over the lines of the window."""
        function, variant = self.function, self.variant
        start = vectors.load(function.gep(self.bias, channel))
        first = {place: function.gep(one.address, channel) for place, one in sources.items()}
        line_size = variant.columns * variant.lanes

        def line(number: SSAValue, sums: Sums) -> Sums:
            row = function.gep(weights, function.multiply(number, line_size))
            held = {
                place: vectors.load(function.gep(first[place], function.multiply(one.step, number)))
                for place, one in sources.items()
            }
            for column in range(variant.columns):
                weight = vectors.load(function.gep(row, column * variant.lanes))
                values = [held[variant.place(pixel, column)] for pixel in range(variant.pixels)]
                sums = add_products(vectors.multiply_add, values, [weight], sums)
            return sums

        return function.fold(self.lines, [start] * variant.pixels, line)

    def _write_results(
        self,
        vectors: Vectors,
        channel: SSAValue,
        sums: Sums,
        limit: Callable[[SSAValue], SSAValue],
    ) -> None:
        function, step = self.function, self.parameters.result_pixel
        for pixel, total in enumerate(sums):
            at = function.add(function.multiply(step, pixel), channel)
            if self.variant.residual:
                total = vectors.add(total, vectors.load(function.gep(self.residual, at)))
            vectors.store(limit(total), function.gep(self.result, at))
