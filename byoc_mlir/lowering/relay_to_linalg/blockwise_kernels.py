"""Kernels of GEMMs with blockwise quantised weights of a few bits.

They read weights as ONNX stores them: the codes of a unit follow each other, and a byte holds the
codes of neighbouring elements. So weights are never copied. Instead, where lanes are steps, the
data is put in the order in which a vector of bytes gives the codes: first the elements of the low
bits of all lanes, then those of the next bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from xdsl.dialects import arith, func, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerType,
    Signedness,
    StringAttr,
    VectorType,
    f32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from byoc_mlir.abi import KERNEL, VECTORISED
from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.linalg_to_loops.micro_kernels import buffer_type, splat, tile_function
from byoc_mlir.lowering.relay_to_linalg.scalars import CONTRACT, REASSOCIATE, multiply_add

GROUP = 4
"""Neighbouring bytes of a unit that are one word of a lane."""

_UNROLLED = 4
LINE_BYTES = 64
BYTE = IntegerType(8, Signedness.UNSIGNED)
"""Element of codes in memory."""
ELEMENTS = (f32, BYTE, f32, f32, f32)
"""Elements of the operands and the result."""

_ADD = vector.CombiningKindAttr(vector.CombiningKindFlag.ADD)


@dataclass(frozen=True)
class BlockwiseForm:
    """Form of a GEMM's weights; each block of elements of a unit has a scale, and takes `bytes`
    bytes.
    """

    bytes: int
    bits: int
    unit: VectorUnit
    """Vectors of the processor; a thread claims the units of a panel of them at a time."""
    one_zero: bool
    """True if all blocks have the same zero point."""
    sums_pairs: bool = True
    """True if the processor sums two int8 products at a time, in 16 bits, as without VNNI."""

    @property
    def block(self) -> int:
        """Returns the number of elements of a block."""
        return self.bytes * self.codes

    @property
    def codes(self) -> int:
        """Returns the number of codes in a byte."""
        return 8 // self.bits


@dataclass(frozen=True)
class BlockwiseFunction:
    """Function for a part of a GEMM.

    It takes all buffers, the sizes, and a range: of rows whose data it puts in order, or of units
    that it computes. So one function serves all GEMMs of a form.
    """

    writer: type[BlockwiseWriter]
    form: BlockwiseForm
    rows: int | None
    """Number of rows of few rows that are computed together; `None` if it is not known."""
    tile: int
    """Units of a tile; 0 for the order of the data."""

    @property
    def name(self) -> str:
        """Returns the name of the function."""
        form = self.form
        zero = "_one_zero" * form.one_zero
        rows = "" if self.rows is None else f"_{self.rows}_rows"
        part = f"_units_{self.tile}" if self.tile else "_order"
        return f"blockwise_{form.bits}_bits_{form.block}{zero}_{self.writer.NAME}{rows}{part}"

    def function(self) -> func.FuncOp:
        """Returns the function."""
        return _function(self).clone()


@lru_cache(maxsize=64)
def _function(part: BlockwiseFunction) -> func.FuncOp:
    """Returns a clone of a cached function, in a third of the time of building one."""
    buffers = [*map(buffer_type, (*ELEMENTS, *part.writer.MEMORY))]

    def write(code: LoopWriter, args: Sequence[SSAValue]) -> None:
        rows, units, blocks, first, count = args[len(buffers) :]
        sizes = BlockwiseSizes(rows if part.rows is None else part.rows, units, blocks)
        writer = part.writer(code, part.form, sizes, args[: len(buffers)])
        if part.tile:
            writer.panel(first, count, part.tile)
        else:
            writer.order_data(first, count)

    made = tile_function(part.name, [*buffers, *[IndexType()] * 5], write)
    del made.attributes[VECTORISED]  # LLVM optimises the loads of scales
    made.attributes[KERNEL] = StringAttr(part.name)
    return made


@dataclass(frozen=True)
class BlockwiseSizes:
    """Sizes of a GEMM."""

    rows: Index
    units: Index
    blocks: Index
    """Number of blocks of a unit."""


class BlockwiseWriter(ABC):
    """Base of the functions' code.

    Its buffers are dense: data `[rows, steps]`, codes `[units, blocks, bytes]`, scales `[units,
    blocks]`, zero points of the same shape or `[1, 1]`, the result `[rows, units]`, and `MEMORY`,
    of which the first is for the data in the order in which it is read `[rows, steps]`.
    """

    NAME: ClassVar[str]
    MEMORY: ClassVar[Sequence[Attribute]] = (f32,)
    """Elements of each further buffer."""

    def __init__(
        self,
        code: LoopWriter,
        form: BlockwiseForm,
        sizes: BlockwiseSizes,
        buffers: Sequence[SSAValue],
    ):
        self.code = code
        self.form = form
        self.sizes = sizes
        self.data, self.bytes, self.scales, self.zeros, self.output, *self.memory = buffers

    @staticmethod
    def tile_units(form: BlockwiseForm) -> int:
        """Returns the units of a tile; a function for tiles computes a multiple of them."""
        return form.unit.panel

    @property
    @abstractmethod
    def most_chunk_bytes(self) -> int:
        """Returns the maximum number of bytes of a chunk."""

    @property
    def chunk_bytes(self) -> int:
        """Returns the number of bytes of a chunk, which are loaded at once."""
        return min(self.most_chunk_bytes, self.form.bytes)

    @property
    def chunk(self) -> int:
        """Returns the number of elements of a chunk."""
        return self.chunk_bytes * self.form.codes

    @property
    def chunks(self) -> int:
        """Returns the number of chunks of a block."""
        return self.form.bytes // self.chunk_bytes

    @property
    def shares(self) -> int:
        """Returns the number of lanes that each add a block's start."""
        return 1

    @property
    def ordered(self) -> SSAValue:
        """Returns the buffer of the data in the order in which it is read."""
        return self.memory[0]

    @abstractmethod
    def order_data(self, first: Index, count: Index) -> None:
        """Emits the preparation of the data of some rows."""

    @abstractmethod
    def panel(self, first: Index, count: Index, tile: int) -> None:
        """Emits the computation of all rows of some units, `tile` units at a time."""

    @contextmanager
    def blocks_of(self, first: Index, count: Index) -> Generator[Index]:
        """Emits a loop over the blocks of some rows, and yields their numbers."""
        before = self.times(first, self.sizes.blocks)
        with self.code.loop(self.times(count, self.sizes.blocks)) as loop:
            yield self.plus(before, loop.counter)

    def over_chunks(self, sums: Sums, added: Callable[[Index, Sums], Sums]) -> Sums:
        """Emits the chunks of a block; `added` adds the chunk of a number to some sums."""
        return self.over(self.chunks, sums, added)

    def over(
        self,
        count: int,
        sums: Sums,
        added: Callable[[Index, Sums], Sums],
        unrolled: int = _UNROLLED,
    ) -> Sums:
        """Emits steps, each of which `added` adds to some sums; a loop if they are more than
        `unrolled`.
        """
        if count > unrolled:
            with self.code.loop(count, sums) as loop:
                loop.carry(added(loop.counter, loop.carried))
            return loop.results
        for step in range(count):
            sums = added(step, sums)
        return sums

    def parts(self, at: Index, count: int) -> list[SSAValue]:
        """Emits the data of a chunk in `count` parts; each has every `count`th element."""
        chunk = self.vector(self.data, at, VectorType(f32, [self.chunk]))
        if count == 1:
            return [chunk]
        places = (range(first, self.chunk, count) for first in range(count))
        return [self.shuffled(chunk, chunk, one) for one in places]

    def codes_in(self, packed: SSAValue) -> Generator[SSAValue]:
        """Emits the codes in the integers of a vector as such integers, from the low bits on, each
        when it is requested.
        """
        code, bits, type_ = self.code, self.form.bits, packed.type
        assert isa(type_, VectorType[IntegerType])
        mask = code.emit(splat(2**bits - 1, type_))
        for offset in range(0, type_.element_type.width.data, bits):
            distance = code.emit(splat(offset, type_))
            shifted = code.emit(arith.ShRUIOp(packed, distance)) if offset else packed
            yield code.emit(arith.AndIOp(shifted, mask))

    def prefetch_next(self, start: Index, block: Index, units: int) -> None:
        """Emits the prefetch of the share of the next tile's codes that a block has: the codes of a
        unit are too few for the processor's own prefetches.
        """
        bytes_ = units * self.form.bytes
        first = self.times(self.plus(start, self.times(self.sizes.blocks, units)), self.form.bytes)
        self.prefetch_lines(self.plus(first, self.times(block, bytes_)), bytes_)

    def prefetch_lines(self, at: Index, bytes_: int) -> None:
        """Emits the prefetches of the lines of some bytes of codes."""
        for line in range(0, bytes_, LINE_BYTES):
            self.prefetch(self.bytes, self.plus(at, line))

    def prefetch(self, buffer: SSAValue, at: Index) -> None:
        """Emits the prefetch of an element's line."""
        self.code.add(host.PrefetchOp(buffer, self.code.index(at)))

    def vector(self, buffer: SSAValue, at: Index, type_: VectorType) -> SSAValue:
        """Emits the load of a vector."""
        return self.code.emit(vector.LoadOp(buffer, [self.code.index(at)], type_))

    def store(self, value: SSAValue, buffer: SSAValue, at: Index) -> None:
        """Emits the store of a vector."""
        self.code.add(vector.StoreOp(value, buffer, [self.code.index(at)]))

    def repeated(self, value: SSAValue, type_: VectorType) -> SSAValue:
        """Emits the broadcast of a number to all lanes."""
        return self.code.emit(vector.BroadcastOp(value, type_))

    def shuffled(self, first: SSAValue, second: SSAValue, places: Sequence[int]) -> SSAValue:
        """Emits a vector of the lanes at some places in two vectors, one after the other."""
        assert isa(first.type, VectorType)
        mask = DenseArrayBase.from_list(i64, places)
        result = VectorType(first.type.element_type, [len(places)])
        return self.code.emit(vector.ShuffleOp(first, second, mask, result_type=result))

    def added_product(self, lhs: SSAValue, rhs: SSAValue, total: SSAValue) -> SSAValue:
        """Emits `lhs * rhs + total`."""
        return multiply_add(self.code.emit, lhs, rhs, total)

    def product(self, lhs: SSAValue, rhs: SSAValue) -> SSAValue:
        """Emits `lhs * rhs`."""
        return self.code.emit(arith.MulfOp(lhs, rhs, CONTRACT))

    def summed(self, value: SSAValue) -> SSAValue:
        """Emits the sum of a vector's lanes."""
        return self.code.emit(
            vector.ReductionOp.create(
                operands=[value],
                result_types=[f32],
                properties={"kind": _ADD, "fastmath": REASSOCIATE},
            )
        )

    def times(self, value: Index, factor: Index) -> Index:
        """Emits `value * factor`."""
        return self.code.product(value, factor)

    def plus(self, *values: Index) -> Index:
        """Emits the sum of indices."""
        total: Index = 0
        for value in values:
            total = self.code.add_index(total, value)
        return total
