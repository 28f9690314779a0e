"""Fast Fourier transforms of mixed radix, on split complex numbers, in vectors along a row."""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import signal as relay
from byoc_mlir.dialects.relay.base import sizes_of, tensor_of, tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.shape import hint
from byoc_mlir.dialects.relay.signal import RADICES, factors_of
from byoc_mlir.lowering.relay_to_linalg.builder import LinalgBuilder, Lowerings
from byoc_mlir.lowering.relay_to_linalg.kernel import Buffer, Index, Kernel, Num, Number
from byoc_mlir.lowering.threads import is_worth_threads
from byoc_mlir.tensors import Array

_FEWEST_AS_MATRIX = 32
"""Minimum length that is transformed as a matrix; rows of a shorter one are too short."""

_TILE = 16
"""Rows and columns of a tile of a transposition: a cache line of `f32`."""

_SAME_SET = 1024
"""Distance of numbers that share a set of L1, 4 KB, which has 8 to 12 lines; a number takes two."""

_SMALL_RADICES = tuple(radix for radix in RADICES if radix not in (8, 6))
"""Radices of stages whose butterflies read from one set."""

_CYCLES_OF_ELEMENT = 2.0
"""Cycles of one element in one step."""

Complex = tuple[Num, Num]
Read = Callable[[Num], Complex]
Write = Callable[[Num, Complex], None]
Step = Callable[[Read, Write], None]


def _lower_fft(op: relay.FftOp, b: LinalgBuilder) -> Sequence[SSAValue]:
    return _Lowering(op, b).run()


class _Lowering:
    """Lowering of a transform of each row to a sequence of steps between scratch buffers.

    A row of n = n1 * n2 is a matrix [n1, n2]. Stages of Stockham's algorithm transform its columns,
    the matrix is multiplied by twiddle factors and transposed, and stages transform its columns
    again. So each inner loop is over adjacent elements.

    The inverse transform is the transform with real and imaginary parts swapped, before and after.
    """

    def __init__(self, op: relay.FftOp, b: LinalgBuilder):
        self._op, self._b = op, b
        self._n = op.complex_length
        self._rows = pymath.prod(sizes_of(op.data)[:-2])
        self._factors: list[Array] = [np.zeros(0)]
        """Factors of all steps, one after the other."""

    def run(self) -> Sequence[SSAValue]:
        """Emits the kernel."""
        op, steps = self._op, self._steps()
        element = tensor_type(op.data).element_type
        factors = np.concatenate(self._factors)
        table = np.stack([np.real(factors), np.imag(factors)]).astype(numpy_dtype(element))
        cycles = self._n * (len(steps) + 1) * _CYCLES_OF_ELEMENT
        is_parallel = is_worth_threads([self._rows], cycles * hint(self._rows))
        kept = self._rows if is_parallel else 1
        buffers = [tensor_of(element, [kept, self._n])] * 4
        inputs = [op.data, self._b.constant(table, "twiddles")]
        k = self._k = Kernel(op, inputs, scratch=buffers)
        with k.loops([self._rows], cost=cycles) as (row,):
            place = row if is_parallel else 0
            pairs = [_Split(k.scratch[first : first + 2], place) for first in (0, 2)]
            read = self._source(row)
            for number, step in enumerate(steps[:-1]):
                step(read, pairs[number % 2].write)
                read = pairs[number % 2].read
            steps[-1](read, self._target(row))
        return k.finish(self._b)

    def _source(self, row: Index) -> Read:
        data = self._k.inputs[0]
        numbers = data.reshaped(self._rows, self._count(data), 2)
        is_swapped = self._op.is_inverse and not self._op.is_real

        def read(at: Num) -> Complex:
            real, imaginary = numbers[row, at, 0], numbers[row, at, 1]
            return (imaginary, real) if is_swapped else (real, imaginary)

        return read

    def _target(self, row: Index) -> Write:
        result = self._k.outputs[0]
        numbers, scale = result.reshaped(self._rows, self._count(result), 2), 1 / self._n

        def write(at: Num, value: Complex) -> None:
            if self._op.is_inverse:
                value = value[1] * scale, value[0] * scale
            numbers[row, at, 0], numbers[row, at, 1] = value

        return write

    def _count(self, buffer: Buffer) -> int:
        """Returns the complex numbers of a row; a real signal has two elements in each."""
        count, parts = buffer.sizes[-2:]
        return int(count) * int(parts) // 2

    def _steps(self) -> list[Step]:
        n, op = self._n, self._op
        halves = self._kept(np.exp(-1j * np.pi * np.arange(n) / n)) if op.is_real else 0
        before = [partial(self._join_halves, halves)] if op.is_real and op.is_inverse else []
        after = [partial(self._split_halves, halves)] if op.is_real and not op.is_inverse else []
        return [*before, *self._transform(), *after]

    def _transform(self) -> list[Step]:
        n = self._n
        first = max(d for d in range(1, pymath.isqrt(n) + 1) if n % d == 0)
        if n < _FEWEST_AS_MATRIX or first == 1:
            return self._stages(n, 1) or [self._copy]
        second = n // first
        turns = np.outer(np.arange(second), np.arange(first)) / n
        transpose = partial(self._transpose, first, second, self._kept(np.exp(-2j * np.pi * turns)))
        return [*self._stages(first, second), transpose, *self._stages(second, first)]

    def _stages(self, n: int, stride: int) -> list[Step]:
        """Returns the stages that transform the columns of a matrix of n rows of `stride`."""
        steps: list[Step] = []
        in_one_set = self._n // RADICES[0] % _SAME_SET == 0
        for radix in factors_of(n, _SMALL_RADICES if in_one_set else RADICES):
            n //= radix
            turns = np.outer(np.arange(n), np.arange(radix)) / (n * radix)
            factors = self._kept(np.exp(-2j * np.pi * turns))
            steps.append(partial(self._stage, radix, n, stride, factors))
            stride *= radix
        return steps

    def _kept(self, factors: Array) -> int:
        """Appends factors to the table, and returns the position of the first."""
        place = sum(one.size for one in self._factors)
        self._factors.append(factors.ravel())
        return place

    def _factor(self, at: Num) -> Complex:
        table = self._k.inputs[1]
        return table[0, at], table[1, at]

    def _copy(self, read: Read, write: Write) -> None:
        write(self._k.index(0), read(self._k.index(0)))

    def _stage(
        self, radix: int, rest: int, stride: int, factors: int, read: Read, write: Write
    ) -> None:
        """Emits butterflies of `radix` elements, of `rest * stride` distance."""
        k = self._k
        with k.sequential([rest]) as (group,):
            first = k.index(group) * radix + factors
            turned = [self._factor(first + number) for number in range(1, radix)]
            with k.sequential([stride]) as (inner,):
                at = k.index(group) * stride + inner
                values = [read(at + number * rest * stride) for number in range(radix)]
                results = _butterfly(values)
                to = k.index(group) * (radix * stride) + inner
                write(to, results[0])
                for number in range(1, radix):
                    value = results[number]
                    if rest > 1:
                        value = _product(value, turned[number - 1])
                    write(to + number * stride, value)

    def _transpose(self, rows: int, columns: int, factors: int, read: Read, write: Write) -> None:
        """Emits the transposition of a matrix, multiplied by factors.

        It goes through tiles: a cache of few ways cannot hold a whole column of long rows.
        """
        k = self._k
        is_tiled = rows % _TILE == columns % _TILE == 0
        across, down = (_TILE, _TILE) if is_tiled else (columns, rows)
        with k.sequential([columns // across, rows // down, across, down]) as (right, below, *at):
            column = k.index(right) * across + at[0]
            row = k.index(below) * down + at[1]
            to = column * rows + row
            value = read(row * columns + column)
            write(to, _product(value, self._factor(to + factors)))

    def _split_halves(self, factors: int, read: Read, write: Write) -> None:
        """Emits the frequencies of a real signal from those of its even and odd elements, which
        were the parts of complex numbers.
        """
        k, n = self._k, self._n
        real, imaginary = read(k.index(0))
        zero = k.like(0, real)
        write(k.index(0), (real + imaginary, zero))
        write(k.index(n), (real - imaginary, zero))
        with k.loop(n, 1) as at:
            even, odd = _parts(read(at), read(n - at))
            turned = _product((odd[1], -odd[0]), self._factor(at + factors))
            write(at, (even[0] + turned[0], even[1] + turned[1]))

    def _join_halves(self, factors: int, read: Read, write: Write) -> None:
        """Emits the reverse of `_split_halves`, with swapped parts."""
        k, n = self._k, self._n
        (first, _), (last, _) = read(k.index(0)), read(k.index(n))
        write(k.index(0), ((first - last) * 0.5, (first + last) * 0.5))
        with k.loop(n, 1) as at:
            even, odd = _parts(read(at), read(n - at))
            real, imaginary = self._factor(at + factors)
            turned = _product(odd, (real, -imaginary))
            write(at, (even[1] + turned[0], even[0] - turned[1]))


class _Split:
    """Scratch buffers of the real and imaginary parts of a row."""

    def __init__(self, buffers: Sequence[Buffer], row: Index):
        self._buffers, self._row = buffers, row

    def read(self, at: Num) -> Complex:
        """Emits the loads of a number."""
        real, imaginary = self._buffers
        return real[self._row, at], imaginary[self._row, at]

    def write(self, at: Num, value: Complex) -> None:
        """Emits the stores of a number."""
        for buffer, part in zip(self._buffers, value, strict=True):
            buffer[self._row, at] = part


def _product(x: Complex, y: tuple[Number, Number]) -> Complex:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _parts(x: Complex, y: Complex) -> tuple[Complex, Complex]:
    """Returns half the sum and half the difference of `x` and the conjugate of `y`."""
    total = (x[0] + y[0]) * 0.5, (x[1] - y[1]) * 0.5
    return total, ((x[0] - y[0]) * 0.5, (x[1] + y[1]) * 0.5)


def _sum(x: Complex, y: Complex) -> Complex:
    return x[0] + y[0], x[1] + y[1]


def _difference(x: Complex, y: Complex) -> Complex:
    return x[0] - y[0], x[1] - y[1]


def _butterfly(values: Sequence[Complex]) -> Sequence[Complex]:
    """Emits the transform of some numbers: of both halves of an even number of them."""
    count = len(values)
    if count == 1:
        return values
    if count % 2:
        return _odd_butterfly(values)
    even, odd = _butterfly(values[::2]), _butterfly(values[1::2])
    turned = [_turned(value, place / count) for place, value in enumerate(odd)]
    return [*map(_sum, even, turned), *map(_difference, even, turned)]


def _turned(value: Complex, turns: float) -> Complex:
    """Emits the product with `exp(-2 pi i turns)`."""
    if turns == 0:
        return value
    if turns == 0.25:
        return value[1], -value[0]
    cosine, sine = pymath.cos(2 * pymath.pi * turns), pymath.sin(2 * pymath.pi * turns)
    return _product(value, (cosine, -sine))


def _odd_butterfly(values: Sequence[Complex]) -> Sequence[Complex]:
    """Emits the transform of an odd number of values, from sums and differences of pairs."""
    count = len(values)
    pairs = [(values[j], values[count - j]) for j in range(1, count // 2 + 1)]
    sums, differences = [_sum(*pair) for pair in pairs], [_difference(*pair) for pair in pairs]
    results = [values[0]] * count
    for one in sums:
        results[0] = _sum(results[0], one)
    for frequency in range(1, count // 2 + 1):
        angles = [2 * pymath.pi * (j * frequency % count) / count for j in range(1, len(pairs) + 1)]
        even = _weighted(sums, [pymath.cos(angle) for angle in angles])
        even = _sum(values[0], even)
        odd = _weighted(differences, [pymath.sin(angle) for angle in angles])
        results[frequency] = even[0] + odd[1], even[1] - odd[0]
        results[count - frequency] = even[0] - odd[1], even[1] + odd[0]
    return results


def _weighted(values: Sequence[Complex], weights: Sequence[float]) -> Complex:
    scaled = [(x[0] * weight, x[1] * weight) for x, weight in zip(values, weights, strict=True)]
    return reduce(_sum, scaled)


FUNCTIONS: Lowerings = {relay.FftOp: _lower_fft}
