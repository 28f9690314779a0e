"""Kernels of GEMMs with blockwise quantised weights of a few bits.

The codes of 16 units are interleaved byte by byte, so that one load gets the next codes of all 16
units. Panels of 16 units are distributed among threads. Weights stay packed in memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle

from xdsl.dialects import arith, memref, vector
from xdsl.dialects.builtin import FloatAttr, VectorType, f32, i1, i8
from xdsl.ir import SSAValue

from byoc_mlir.dialects import host
from byoc_mlir.dims import Size, floordiv
from byoc_mlir.kernels.costs import ASSUMED
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.scalars import CONTRACT, REASSOCIATE, multiply_add

LANES = 16
"""Units of a panel; a processor with shorter vectors uses several of them."""

_TILE_ROWS = 6
_REST_ROWS = (4, 2, 1)
_SUMS = 4
"""Number of interleaved accumulators, so that an addition need not wait for the previous one."""
_UNROLLED_BYTES = 4
_UNROLLED_STEPS = 4
_UNPACKED_STEPS = 512
_NUMBERS = VectorType(f32, [LANES])
_BYTES = VectorType(i8, [LANES])


@dataclass(frozen=True)
class BlockwiseSizes:
    """Sizes of a GEMM; each `block` of elements of a unit has a scale, and takes `bytes` bytes."""

    rows: Size
    units: int
    blocks: int
    bytes: int
    bits: int
    usual_rows: int
    """Number of rows for which code is optimised."""

    @property
    def panels(self) -> int:
        return -(-self.units // LANES)

    @property
    def block(self) -> int:
        """Returns the number of elements of a block."""
        return self.bytes * self.codes

    @property
    def codes(self) -> int:
        """Returns the number of codes in a byte."""
        return 8 // self.bits

    @property
    def steps(self) -> int:
        return self.blocks * self.block


@dataclass(frozen=True)
class Buffers:
    """Buffers of a kernel, all dense."""

    data: SSAValue
    """Data, `[rows, steps]`."""
    codes: SSAValue
    """Weights, `[panels, blocks * bytes, 16]`."""
    scales: SSAValue
    """Scales, `[panels, blocks, 16]`."""
    zeros: SSAValue
    """Zero points, of the shape of the scales, or `[1, 1, 16]`."""
    output: SSAValue
    """Result, `[rows, units]`."""


class _Writer(ABC):
    def __init__(
        self, code: LoopWriter, sizes: BlockwiseSizes, buffers: Buffers, *, one_zero: bool
    ):
        self._code = code
        self._sizes = sizes
        self._data, self._bytes, self._scales, self._zeros, self._output = map(
            code.flat,
            (buffers.data, buffers.codes, buffers.scales, buffers.zeros, buffers.output),
        )
        self._one_zero = one_zero
        self._zero = code.emit(splat(0.0, _NUMBERS))

    def write(self) -> None:
        """Emits the loop over all panels, on all threads if there is enough work."""
        sizes = self._sizes
        work = sizes.usual_rows * sizes.units * sizes.steps / ASSUMED.block_products
        if work >= ASSUMED.parallel_cycles and sizes.panels > 1:
            with self._code.parallel([sizes.panels], cycles=work) as (panel,):
                self._panel(panel)
        else:
            with self._code.loop(sizes.panels) as loop:
                self._panel(loop.counter)

    @abstractmethod
    def _panel(self, panel: SSAValue) -> None:
        """Emits the computation of all rows of 16 units."""

    def _codes(self, at: Index) -> list[SSAValue]:
        """Emits the codes in the bytes of 16 units as values, from the low bits on."""
        code, bits = self._code, self._sizes.bits
        packed = code.emit(vector.LoadOp(self._bytes, [code.index(at)], _BYTES))
        return [
            code.emit(host.CodesOp(packed, offset, bits, _NUMBERS)) for offset in range(0, 8, bits)
        ]

    def _vector(self, buffer: SSAValue, at: Index) -> SSAValue:
        return self._code.emit(vector.LoadOp(buffer, [self._code.index(at)], _NUMBERS))

    def _number(self, buffer: SSAValue, at: Index) -> SSAValue:
        """Emits the broadcast of one element to all lanes."""
        return self._code.emit(vector.BroadcastOp(self._code.load(buffer, at), _NUMBERS))

    def _scale(self, panel: SSAValue, block: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Emits the loads of the scales and zero points for a block of 16 units."""
        at = self._sum(self._times(panel, self._sizes.blocks * LANES), self._times(block, LANES))
        zeros = self._vector(self._zeros, 0 if self._one_zero else at)
        return self._vector(self._scales, at), zeros

    def _with_products(self, numbers: Iterable[SSAValue], weights: SSAValue, sums: Sums) -> Sums:
        return add_products(partial(multiply_add, self._code.emit), numbers, [weights], sums)

    def _product(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._code.emit(arith.MulfOp(lhs, rhs, CONTRACT))

    def _plus(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._code.emit(arith.AddfOp(lhs, rhs, CONTRACT))

    def _minus(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        return self._code.emit(arith.SubfOp(lhs, rhs, CONTRACT))

    def _times(self, value: Index, factor: int) -> Index:
        return self._code.scale_index(value, factor)

    def _sum(self, *values: Index) -> Index:
        total: Index = 0
        for value in values:
            total = self._code.add_index(total, value)
        return total

    def _mask(self, panel: SSAValue) -> SSAValue | None:
        """Emits the mask of a panel's valid units; None if all units of every panel are valid."""
        if self._sizes.units % LANES == 0:
            return None
        left = self._sum(self._sizes.units, self._times(panel, -LANES))
        type_ = VectorType(i1, [LANES])
        return self._code.emit(vector.CreateMaskOp([self._code.index(left)], type_))

    def _store(self, value: SSAValue, at: Index, mask: SSAValue | None) -> None:
        place = [self._code.index(at)]
        if mask is None:
            self._code.add(vector.StoreOp(value, self._output, place))
        else:
            self._code.add(vector.MaskedStoreOp(self._output, place, mask, value))

    def _held(self, at: Index, mask: SSAValue | None) -> SSAValue:
        if mask is None:
            return self._vector(self._output, at)
        place = [self._code.index(at)]
        return self._code.emit(vector.MaskedLoadOp(self._output, place, mask, self._zero, _NUMBERS))


class FewRows(_Writer):
    """Kernel for few rows.

    Each code is loaded once, and multiplied with all rows, in registers. The MACs of the bare codes
    are summed per block, and scaled afterwards. For a symbolic number of rows, the kernel computes
    one row after the other.
    """

    def __init__(
        self,
        code: LoopWriter,
        sizes: BlockwiseSizes,
        buffers: Buffers,
        sums: SSAValue,
        *,
        one_zero: bool,
    ):
        """Takes scratch memory `sums [rows, blocks]` for the sum of each block of data."""
        super().__init__(code, sizes, buffers, one_zero=one_zero)
        self._sums = code.flat(sums)

    def write(self) -> None:
        code, block = self._code, self._sizes.block
        nothing = code.emit(arith.ConstantOp(FloatAttr(0.0, f32)))
        with code.loop(self._sizes.rows * self._sizes.blocks) as loop:
            first = self._times(loop.counter, block)
            with code.loop(block, [nothing]) as steps:
                x = code.load(self._data, self._sum(first, steps.counter))
                steps.carry([code.emit(arith.AddfOp(steps.carried[0], x, REASSOCIATE))])
            code.store(steps.results[0], self._sums, loop.counter)
        super().write()

    def _panel(self, panel: SSAValue) -> None:
        rows = self._sizes.rows
        if isinstance(rows, int):
            self._rows(panel, range(rows))
            return
        with self._code.loop(rows) as loop:
            self._rows(panel, [loop.counter])

    def _rows(self, panel: SSAValue, rows: Sequence[Index]) -> None:
        """Emits the computation of some rows of 16 units."""
        code, sizes = self._code, self._sizes
        with code.loop(sizes.blocks, [self._zero] * len(rows)) as loop:
            products = self._block(panel, loop.counter, rows)
            scale, zero = self._scale(panel, loop.counter)
            totals: list[SSAValue] = []
            for row, product, total in zip(rows, products, loop.carried, strict=True):
                at = self._sum(loop.counter, self._times(row, sizes.blocks))
                shift = self._product(zero, self._number(self._sums, at))
                totals.append(self._plus(total, self._product(scale, self._minus(product, shift))))
            loop.carry(totals)
        mask = self._mask(panel)
        for row, total in zip(rows, loop.results, strict=True):
            at = self._sum(self._times(row, sizes.units), self._times(panel, LANES))
            self._store(total, at, mask)

    def _block(self, panel: SSAValue, block: SSAValue, rows: Sequence[Index]) -> list[SSAValue]:
        """Emits the dot products of a block's codes with each row."""
        code, sizes, count = self._code, self._sizes, len(rows)
        number = self._sum(self._times(panel, sizes.blocks), block)
        first_code = self._times(number, sizes.bytes * LANES)
        first_step = self._times(block, sizes.block)
        begins = [self._times(row, sizes.steps) for row in rows]
        chains = max(1, _SUMS // count)
        with code.loop(sizes.bytes, [self._zero] * (chains * count), step=_UNROLLED_BYTES) as loop:
            sums = list(loop.carried)
            chain = cycle(range(chains))
            for offset in range(min(_UNROLLED_BYTES, sizes.bytes)):
                byte = self._sum(loop.counter, offset)
                numbers = self._codes(self._sum(first_code, self._times(byte, LANES)))
                for place, weights in enumerate(numbers):
                    step = self._sum(first_step, self._times(byte, sizes.codes), place)
                    first = next(chain) * count
                    chosen = slice(first, first + count)
                    factors = (self._number(self._data, self._sum(step, at)) for at in begins)
                    sums[chosen] = self._with_products(factors, weights, sums[chosen])
            loop.carry(sums)
        totals = list(loop.results[:count])
        for place, value in enumerate(loop.results[count:]):
            totals[place % count] = self._plus(totals[place % count], value)
        return totals


class ManyRows(_Writer):
    """Kernel for many rows.

    It dequantises some hundred steps of a panel to the stack, and multiplies tiles of rows with
    them.
    """

    def _panel(self, panel: SSAValue) -> None:
        code, sizes = self._code, self._sizes
        most = min(sizes.blocks, max(1, _UNPACKED_STEPS // sizes.block))
        unpacked = code.emit(memref.AllocaOp.get(f32, 64, [most * sizes.block * LANES]))
        with code.loop(sizes.blocks, step=most) as loop:
            count: Index = most
            if sizes.blocks % most:
                count = code.minimum(self._sum(sizes.blocks, self._times(loop.counter, -1)), most)
            with code.loop(count) as blocks:
                block = code.index(self._sum(loop.counter, blocks.counter))
                self._unpack(panel, block, unpacked, self._times(blocks.counter, sizes.block))
            part = _Part(unpacked, self._times(loop.counter, sizes.block), count, panel)
            fresh = code.is_zero(loop.counter)
            full = floordiv(sizes.rows, _TILE_ROWS) * _TILE_ROWS
            with code.loop(full, step=_TILE_ROWS) as rows:
                self._tile(part, rows.counter, _TILE_ROWS, fresh)
            self._rest(part, full, sizes.rows - full, fresh)

    def _rest(self, part: _Part, first: Size, rows: Size, fresh: SSAValue) -> None:
        """Emits the rows after the whole tiles; for a symbolic number, a tile for each bit of the
        number.
        """
        if isinstance(rows, int):
            if rows:
                self._tile(part, first, rows, fresh)
            return
        code, number = self._code, self._code.index(rows)
        before: Index = first
        for bit in _REST_ROWS:
            has_tile = code.bits(number, bit)
            with code.if_positive(has_tile):
                self._tile(part, before, bit, fresh)
            before = self._sum(before, has_tile)

    def _unpack(self, panel: SSAValue, block: SSAValue, target: SSAValue, first: Index) -> None:
        """Emits the dequantisation of a block's weights to `target`, from step `first` on."""
        code, sizes = self._code, self._sizes
        scale, zero = self._scale(panel, block)
        number = self._sum(self._times(panel, sizes.blocks), block)
        with code.loop(sizes.bytes) as loop:
            at = self._sum(self._times(number, sizes.bytes), loop.counter)
            for place, value in enumerate(self._codes(self._times(at, LANES))):
                weight = self._product(self._minus(value, zero), scale)
                step = self._sum(first, self._times(loop.counter, sizes.codes), place)
                code.add(vector.StoreOp(weight, target, [code.index(self._times(step, LANES))]))

    def _tile(self, part: _Part, first: Index, rows: int, fresh: SSAValue) -> None:
        """Emits the MACs of some rows with the steps of `part`."""
        code, sizes = self._code, self._sizes
        mask = self._mask(part.panel)
        places = [
            self._sum(
                self._times(self._sum(first, row), sizes.units), self._times(part.panel, LANES)
            )
            for row in range(rows)
        ]
        starts = [
            self._sum(self._times(self._sum(first, row), sizes.steps), part.first)
            for row in range(rows)
        ]
        sums = [
            code.emit(arith.SelectOp(fresh, self._zero, self._held(place, mask)))
            for place in places
        ]
        steps = self._times(part.blocks, sizes.block)
        with code.loop(steps, sums, step=_UNROLLED_STEPS) as loop:
            totals = loop.carried
            for offset in range(_UNROLLED_STEPS):
                step = self._sum(loop.counter, offset)
                weights = self._vector(part.weights, self._times(step, LANES))
                factors = (self._number(self._data, self._sum(start, step)) for start in starts)
                totals = self._with_products(factors, weights, totals)
            loop.carry(totals)
        for place, total in zip(places, loop.results, strict=True):
            self._store(total, place, mask)


@dataclass(frozen=True)
class _Part:
    """Range of dequantised blocks of a panel."""

    weights: SSAValue
    """Weights, `[steps, 16]`."""
    first: Index
    """Number of the first step."""
    blocks: Index
    panel: SSAValue
