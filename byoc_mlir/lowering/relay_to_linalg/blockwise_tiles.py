"""Kernel of GEMMs with blockwise quantised weights, for many rows."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, llvm, memref, vector
from xdsl.dialects.builtin import Float32Type, IntegerType, VectorType, f32, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.kernels.vectors import ELEMENT_BYTES
from byoc_mlir.lowering.linalg_to_loops.code import Index
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import splat
from byoc_mlir.lowering.relay_to_linalg.blockwise_kernels import (
    BYTE,
    GROUP,
    LINE_BYTES,
    BlockwiseWriter,
)

_REST_ROWS = (8, 4, 2, 1)
_UNROLLED_STEPS = 4
_CHUNK_BYTES = 16

_AHEAD = 512
"""Elements by which data is prefetched: it may come from the caches that all cores share."""


class ManyRows(BlockwiseWriter):
    """Kernel for many rows.

    It dequantises a range of steps of a panel, and multiplies tiles of rows with them. Lanes are
    units. The data is one stream `[ranges of steps, tiles, steps / 4, tile_rows, 4]`: rows whose
    distance is a multiple of 4 KB would meet in the same sets of L1. On the stack are weights
    `[steps, panel]`, scales and zero points `[blocks, panel]`, and words of codes `[words, panel]`.
    A panel that is not full repeats the last unit.
    """

    NAME = "many"
    UNPACKED: ClassVar[Float32Type | IntegerType] = f32
    """Element of the unpacked weights."""
    UNPACKED_BYTES: ClassVar[int] = 2**16
    """Bytes of a panel that are unpacked at a time, unless a block has more."""

    @property
    def most_chunk_bytes(self) -> int:
        return _CHUNK_BYTES

    @property
    def unit_lanes(self) -> int:
        """Returns the number of units of a vector."""
        return self.form.unit.lanes

    @property
    def panel_units(self) -> int:
        """Returns the number of units of a panel."""
        return self.form.unit.panel

    @property
    def vectors(self) -> range:
        """Returns the numbers of the vectors of units in a panel."""
        return range(self.form.unit.panel_vectors)

    @property
    def floats(self) -> VectorType:
        """Returns the type of a number for each unit of a vector."""
        return VectorType(f32, [self.unit_lanes])

    @property
    def words(self) -> VectorType:
        """Returns the type of a word for each unit of a vector."""
        return VectorType(i32, [self.unit_lanes])

    def order_data(self, first: Index, count: Index) -> None:
        """Emits the order of the data: a few steps of each row of a tile are neighbours."""
        code, size = self.code, self.form.block
        type_ = VectorType(f32, [_UNROLLED_STEPS])
        with self._ranges() as (block, blocks), code.loop(count) as loop:
            row, before = self.plus(first, loop.counter), self.times(block, size)
            start = self.plus(self.times(row, self.times(self.sizes.blocks, size)), before)
            target = self.place(row, block, blocks)
            with code.loop(self.times(blocks, size), step=_UNROLLED_STEPS) as step:
                value = self.vector(self.data, self.plus(start, step.counter), type_)
                at = self.plus(target, self.times(step.counter, self.tile_rows))
                self.store(value, self.ordered, at)

    @contextmanager
    def _ranges(self) -> Generator[tuple[Index, Index]]:
        """Emits a loop over the blocks that are unpacked at a time: the first one, and how many."""
        code, blocks = self.code, self.sizes.blocks
        most = self.most_blocks
        with code.loop(blocks, step=most) as loop:
            left = self.plus(blocks, self.times(loop.counter, -1))
            yield loop.counter, code.minimum(left, most)

    @property
    def most_blocks(self) -> int:
        """Returns the number of blocks that are unpacked at a time."""
        block_bytes = self.form.block * self.panel_units * self.UNPACKED.size
        return max(1, self.UNPACKED_BYTES // block_bytes)

    def place(self, row: Index, block: Index, blocks: Index) -> Index:
        """Emits the offset of a row in the ordered data of some blocks, from `block` on."""
        code, tile, size = self.code, self.tile_rows, self.form.block
        all_rows = self.times(code.quotient(self.plus(self.sizes.rows, tile - 1), tile), tile)
        first = self.times(code.quotient(row, tile), tile)
        before = self.times(self.times(block, size), all_rows)
        steps = self.times(blocks, size)
        place = self.times(self.plus(row, self.times(first, -1)), _UNROLLED_STEPS)
        return self.plus(before, self.times(first, steps), place)

    def panel(self, first: Index, count: Index, tile: int) -> None:
        code, sizes = self.code, self.sizes
        memory = [code.emit(memref.AllocaOp.get(type_, 64, [size])) for type_, size in self.held()]
        tiled = self.times(code.quotient(sizes.rows, self.tile_rows), self.tile_rows)
        with self._ranges() as (block, blocks):
            part = BlockRange(memory, block, blocks, first, count, tile == self.panel_units)
            self._unpack(part)
            with code.loop(tiled, step=self.tile_rows) as rows:
                self.multiply(part, rows.counter, self.tile_rows)
            self._rest(part, tiled)

    @property
    def tile_rows(self) -> int:
        """Returns the rows of a tile, whose accumulators have to fit in the registers."""
        return self.form.unit.tile_rows

    def held(self) -> list[tuple[Attribute, int]]:
        """Returns the element and its number for each part of the memory on the stack."""
        factors = [(f32, self.panel_units * self.most_blocks)] * len(self.factors_in_blocks)
        weights = self.UNPACKED, self.form.block * self.panel_units * self.most_blocks
        return [weights, *factors, self.scratch()]

    def scratch(self) -> tuple[Attribute, int]:
        """Returns the element and its number for the last part: words of a chunk of codes."""
        return i32, self.chunk_bytes // GROUP * self.panel_units

    def _rest(self, part: BlockRange, first: Index) -> None:
        """Emits the rows after the whole tiles: a tile for each bit of their number."""
        code = self.code
        number = code.index(self.plus(self.sizes.rows, self.times(first, -1)))
        before = first
        for bit in _REST_ROWS:
            if bit >= self.tile_rows:
                continue
            has_tile = code.bits(number, bit)
            with code.if_positive(has_tile):
                self.multiply(part, before, bit)
            before = self.plus(before, has_tile)

    def _unpack(self, part: BlockRange) -> None:
        """Emits the unpacking of the weights of `part`."""
        code = self.code
        units = [self.plus(part.unit, unit) for unit in range(self.panel_units)]
        if not part.is_full:
            last = self.plus(self.sizes.units, -1)
            units = [code.minimum(unit, last) for unit in units]
        starts = [self.plus(self.times(unit, self.sizes.blocks), part.first) for unit in units]
        with code.loop(part.blocks) as loop:  # long before these are loaded as vectors
            at = self.times(loop.counter, self.panel_units)
            for unit, start in enumerate(starts):
                for source, target in zip(self.factors_in_blocks, part.memory[1:], strict=False):
                    value = code.load(source, self.plus(start, loop.counter))
                    code.store(value, target, self.plus(at, unit))
        first = self.times(part.unit, self.sizes.blocks)
        with code.loop(part.blocks) as loop:
            self.prefetch_next(first, self.plus(part.first, loop.counter), self.panel_units)
            self.unpack_codes(
                part, [self.plus(start, loop.counter) for start in starts], loop.counter
            )

    def unpack_codes(self, part: BlockRange, blocks: Sequence[Index], block: Index) -> None:
        """Emits the unpacking of a block of all units.

        Args:
            blocks: numbers of the units' blocks among all blocks.
            block: number of the block in `part`.
        """
        form, code = self.form, self.code
        factors = [self._factors(part, block, number) for number in self.vectors]
        first = self.times(block, form.block * self.panel_units)

        def unpacked(chunk: Index, sums: Sums) -> Sums:
            before, words = self.times(chunk, self.chunk), part.memory[-1]
            for number in self.vectors:
                for place, word in enumerate(self.words_of(blocks, chunk, number)):
                    self.store(word, words, place * self.panel_units + number * self.unit_lanes)
            with code.loop(self.chunk_bytes // GROUP) as loop:
                at = self.times(loop.counter, self.panel_units)
                packed = [
                    self.vector(words, self.plus(at, number * self.unit_lanes), self.words)
                    for number in self.vectors
                ]
                start = self.plus(before, self.times(loop.counter, GROUP * form.codes))
                for step, values in enumerate(zip(*map(self.codes_in, packed), strict=True)):
                    at = self.plus(first, self.times(self.plus(start, step), self.panel_units))
                    for number, (value, factor) in enumerate(zip(values, factors, strict=True)):
                        float_ = code.emit(llvm.SIToFPOp(value, self.floats))
                        weight = self.added_product(float_, *factor)
                        self.store(weight, part.weights, self.plus(at, number * self.unit_lanes))
            return sums

        self.over(self.chunks, [], unpacked, 1)

    def _factors(self, part: BlockRange, block: Index, number: int) -> tuple[SSAValue, SSAValue]:
        """Emits the scales of a block of a vector of units, and the negative scaled zero points."""
        scale, *zeros = self.factors_of(
            part, self.plus(self.times(block, self.panel_units), number * self.unit_lanes)
        )
        zero = zeros[0] if zeros else self.repeated(self.code.load(self.zeros, 0), self.floats)
        return scale, self.product(self.code.emit(arith.NegfOp(zero)), scale)

    @property
    def factors_in_blocks(self) -> Sequence[SSAValue]:
        """Returns the scales, and the zero points unless all are equal."""
        return [self.scales] if self.form.one_zero else [self.scales, self.zeros]

    def factors_of(self, part: BlockRange, at: Index) -> list[SSAValue]:
        """Emits the loads of these factors for a vector of units."""
        count = len(self.factors_in_blocks)
        return [self.vector(one, at, self.floats) for one in part.memory[1 : 1 + count]]

    def words_of(self, blocks: Sequence[Index], chunk: Index, number: int) -> list[SSAValue]:
        """Emits a chunk of the codes of a vector of units: the first words of all units, then the
        second ones, and so on.

        Args:
            blocks: numbers of all units' blocks among all blocks.
            chunk: number of the chunk in the block.
            number: number of the vector.
        """
        form, lanes = self.form, self.unit_lanes
        count = self.chunk_bytes // GROUP
        words, at = VectorType(i32, [count]), self.times(chunk, self.chunk_bytes)
        bytes_ = VectorType(BYTE, [self.chunk_bytes])
        starts = [
            self.plus(self.times(block, form.bytes), at)
            for block in blocks[number * lanes :][:lanes]
        ]
        loaded = (self.vector(self.bytes, start, bytes_) for start in starts)
        values = [self.code.emit(vector.BitcastOp(value, words)) for value in loaded]
        if count < GROUP:
            joined = self._joined(values)
            return [
                self.shuffled(joined, joined, range(n, lanes * count, count)) for n in range(count)
            ]
        quarters = range(0, lanes, GROUP)  # of 128 bits, in which processors shuffle
        first, second, third, fourth = (self._joined(values[unit::GROUP]) for unit in range(GROUP))
        found: list[SSAValue] = []
        for half in (0, 2):
            pairs = [at + half + n + two for at in quarters for n in (0, 1) for two in (0, lanes)]
            left, right = self.shuffled(first, second, pairs), self.shuffled(third, fourth, pairs)
            for word in (0, 2):
                both = [
                    at + word + n + two for at in quarters for two in (0, lanes) for n in (0, 1)
                ]
                found.append(self.shuffled(left, right, both))
        return found

    def _joined(self, values: Sequence[SSAValue]) -> SSAValue:
        """Emits the concatenation of a power of two of vectors."""
        while len(values) > 1:
            pairs = zip(values[::2], values[1::2], strict=True)
            values = [self.shuffled(*pair, range(2 * _lanes(pair[0]))) for pair in pairs]
        return values[0]

    def multiply(self, part: BlockRange, first: Index, rows: int) -> None:
        """Emits the MACs of some rows with all units of `part`."""
        code, form = self.code, self.form
        numbers = [self.plus(first, row) for row in range(rows)]
        data = self.place(first, part.first, part.blocks)
        nothing = [code.emit(splat(0.0, self.floats))] * (rows * len(self.vectors))
        steps = self.times(part.blocks, form.block)
        with code.loop(steps, nothing, step=_UNROLLED_STEPS) as loop:
            sums: Sums = loop.carried
            here = self.plus(data, self.times(loop.counter, self.tile_rows))
            for line in range(0, rows * _UNROLLED_STEPS, LINE_BYTES // ELEMENT_BYTES):
                self.prefetch(self.ordered, self.plus(here, _AHEAD + line))
            for more in range(_UNROLLED_STEPS):
                at = self.times(self.plus(loop.counter, more), self.panel_units)
                weights = [
                    self.vector(part.weights, self.plus(at, number * self.unit_lanes), self.floats)
                    for number in self.vectors
                ]
                elements = (
                    self.repeated(
                        code.load(self.ordered, self.plus(here, row * _UNROLLED_STEPS + more)),
                        self.floats,
                    )
                    for row in range(rows)
                )
                sums = add_products(self.added_product, elements, weights, sums)
            loop.carry(sums)
        self.add_to_output(loop.results, part, numbers)

    def add_to_output(self, totals: Sums, part: BlockRange, rows: Sequence[Index]) -> None:
        """Emits the addition of some rows' sums to the output; the first ones are stored."""
        with self.code.only_if(self.code.is_zero(self.code.index(part.first))):
            self._store_sums(totals, part, rows, is_first=True)
        with self.code.if_positive(self.code.index(part.first)):
            self._store_sums(totals, part, rows, is_first=False)

    def _store_sums(
        self, totals: Sums, part: BlockRange, rows: Sequence[Index], *, is_first: bool
    ) -> None:
        code, floats = self.code, self.floats
        places = [(row, number * self.unit_lanes) for row in rows for number in self.vectors]
        for (row, unit), total in zip(places, totals, strict=True):
            at = code.index(self.plus(self.times(row, self.sizes.units), part.unit, unit))
            if part.is_full:  # some processors are slow at masked stores
                if not is_first:
                    held = self.vector(self.output, at, floats)
                    total = code.emit(arith.AddfOp(held, total))
                self.store(total, self.output, at)
                continue
            count = code.index(self.plus(part.count, -unit))
            mask = code.emit(vector.CreateMaskOp([count], VectorType(i1, [self.unit_lanes])))
            if not is_first:
                nothing = code.emit(splat(0.0, floats))
                held = code.emit(vector.MaskedLoadOp(self.output, [at], mask, nothing, floats))
                total = code.emit(arith.AddfOp(held, total))
            code.add(vector.MaskedStoreOp(self.output, [at], mask, total))


def _lanes(value: SSAValue) -> int:
    assert isa(value.type, VectorType)
    return value.type.element_count()


@dataclass(frozen=True)
class BlockRange:
    """Range of unpacked blocks of some units."""

    memory: Sequence[SSAValue]
    """Memory on the stack, as in `ManyRows.held`."""
    first: Index
    """Number of the first block."""
    blocks: Index
    unit: Index
    """Number of the first unit."""
    count: Index
    """Number of units."""
    is_full: bool
    """True if the units fill a panel."""

    @property
    def weights(self) -> SSAValue:
        """Returns the unpacked weights."""
        return self.memory[0]
