"""Register-blocked micro-kernels of GEMMs, one function for each size of tile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from typing import Protocol, cast

from xdsl.dialects import arith, func, vector
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    DenseIntOrFPElementsAttr,
    FixedBitwidthType,
    FunctionType,
    IndexType,
    MemRefType,
    UnitAttr,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Region, SSAValue

from byoc_mlir.abi import VECTORISED
from byoc_mlir.dialects import host
from byoc_mlir.kernels.gemm import Sums, add_products
from byoc_mlir.kernels.ops import unary
from byoc_mlir.lowering.linalg_to_loops.code import Index, LoopWriter
from byoc_mlir.lowering.relay_to_linalg.scalars import multiply_add

_INDEX = IndexType()
_MAY_OVERFLOW = {"overflowFlags": arith.IntegerOverflowAttr("none")}
_UNROLLED = 4
TILE_VECTORS = 2
"""Vectors in a row of the default tile, and of a panel."""
LINE_BYTES = 64


def tile_lanes(element: FixedBitwidthType, vector_bits: int) -> int:
    """Returns the number of elements of a vector register."""
    return max(2, vector_bits // element.bitwidth)


def tile_columns(element: FixedBitwidthType, vector_bits: int) -> int:
    """Returns the columns of a full tile."""
    return TILE_VECTORS * tile_lanes(element, vector_bits)


@dataclass(frozen=True)
class Tile:
    """Tile of a result, as a micro-kernel computes it: `rows` times `vectors` vectors of `lanes`
    elements.

    Variants:

    - `masked`: computes only the first `valid` columns, a parameter.
    - `clamped`: fewer rows may be left, a parameter; the others repeat the last one.
    - `strided`: the distance between two steps of `a` is a parameter; otherwise it is 1.
    - `panel`: the distance between two steps of `b` is a panel's columns; otherwise it is a
      parameter. With more than two vectors, a tile reads several panels at once.
    - `parted`: computes a part of the panels' steps; a panel's number of steps is a parameter.
    - `fresh`: sums start at zero; otherwise a parameter determines if they do. A load of the old
      values, even if unused, would delay the sums.
    """

    rows: int
    lanes: int
    element: FixedBitwidthType
    masked: bool
    vectors: int = TILE_VECTORS
    strided: bool = False
    panel: bool = False
    parted: bool = False
    fresh: bool = False
    clamped: bool = False

    @property
    def columns(self) -> int:
        """Returns the columns of a full tile."""
        return self.vectors * self.lanes

    @property
    def panel_columns(self) -> int:
        """Returns the columns of a panel."""
        return TILE_VECTORS * self.lanes

    @property
    def line_elements(self) -> int:
        """Returns the elements of a cache line."""
        return LINE_BYTES // self.element.size

    @property
    def shares(self) -> int:
        """Returns the number of calls that together prefetch as much of `b` as one call reads."""
        return _UNROLLED * self.columns // self.line_elements

    @property
    def vector(self) -> VectorType:
        """Returns the type of one vector."""
        return VectorType(self.element, [self.lanes])

    @property
    def name(self) -> str:
        """Returns the name of the function."""
        kind = "_panel" * self.panel + "_parted" * self.parted + "_strided" * self.strided
        kind += "_masked" * self.masked + "_fresh" * self.fresh
        kind += "_clamped" * self.clamped
        return f"tile_{self.rows}x{self.columns}_{self.element}{kind}"

    def function(self) -> func.FuncOp:
        """Returns the micro-kernel.

        ```
        @tile([%fresh,] %a, %a_start, %a_row [, %a_step], %b, %b_start [, %b_step]
              [, %panel_steps], %c, %c_start, %c_row, %steps, %ahead [, %left] [, %valid]):
            c[c_start + i * c_row + j] = (fresh ? 0 : the same element) + sum over k < steps of
                a[a_start + i * a_row + k * a_step] * b[b_start + k * b_step + j]
        ```

        It also prefetches a cache line of `b`, from `ahead` on, for every fourth step.
        """
        return _function(self).clone()


class AnyTile(Protocol):
    """Interface of tiles, each with a micro-kernel; equal tiles have the same micro-kernel."""

    @property
    def name(self) -> str:
        """Returns the name of the function."""
        ...

    def function(self) -> func.FuncOp:
        """Returns the micro-kernel."""
        ...


@dataclass
class MicroKernels:
    """Micro-kernels that a module uses, each created when it is first requested."""

    _functions: dict[AnyTile, func.FuncOp] = field(default_factory=dict[AnyTile, func.FuncOp])

    @property
    def functions(self) -> Sequence[func.FuncOp]:
        """Returns all micro-kernels."""
        return tuple(self._functions.values())

    def symbol(self, tile: AnyTile) -> str:
        """Returns the symbol of the function for a tile."""
        if tile not in self._functions:
            self._functions[tile] = tile.function()
        return tile.name


def buffer_type(element: Attribute) -> MemRefType:
    """Returns the type of the micro-kernels' buffers."""
    return MemRefType(element, [DYNAMIC_INDEX])


@lru_cache(maxsize=64)
def _function(tile: Tile) -> func.FuncOp:
    """Returns a clone of a cached micro-kernel, in a third of the time of building one."""
    buffer = buffer_type(tile.element)
    types = [*[i1] * (not tile.fresh), buffer, *[_INDEX] * (3 if tile.strided else 2)]
    types += [buffer, _INDEX, *[_INDEX] * (tile.parted + (not tile.panel))]
    types += [buffer, *[_INDEX] * (4 + tile.clamped + tile.masked)]
    made = tile_function(tile.name, types, lambda code, args: _TileCode(tile, code, args).write())
    if tile.masked:  # LLVM's optimisations keep masks in the form that loads take them in
        del made.attributes[VECTORISED]
    return made


def tile_function(
    name: str, types: Sequence[Attribute], write: Callable[[LoopWriter, Sequence[SSAValue]], None]
) -> func.FuncOp:
    """Returns a private function for a tile; one copy serves the whole module.

    Args:
        name: the function's name.
        types: types of the function's parameters.
        write: function that emits the code, given the parameters.
    """
    block = Block(arg_types=types)
    end = func.ReturnOp()
    block.add_op(end)
    function = func.FuncOp(
        name, FunctionType.from_lists(types, []), Region(block), visibility="private"
    )
    function.attributes |= {"no_inline": UnitAttr(), VECTORISED: UnitAttr()}
    write(LoopWriter(block, end), block.args)
    return function


def splat(value: float, type_: VectorType) -> arith.ConstantOp:
    """Returns a vector constant of equal elements, floats or integers."""
    number_type = cast(VectorType[AnyFloat], type_)
    return arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(number_type, [value]), type_)


class _TileCode:
    def __init__(self, tile: Tile, code: LoopWriter, args: Sequence[SSAValue]):
        self._tile = tile
        self._code = code
        self._type = tile.vector
        rest = iter(args)
        self._fresh = None if tile.fresh else next(rest)
        self._a, self._a_start, self._a_row = islice(rest, 3)
        self._a_step: Index = next(rest) if tile.strided else 1
        self._b, self._b_start = islice(rest, 2)
        self._b_step: Index = tile.panel_columns if tile.panel else next(rest)
        panel_steps = next(rest) if tile.parted else None
        self._c, self._c_start, self._c_row, self._steps, self._ahead = islice(rest, 5)
        self._panel_steps = self._steps if panel_steps is None else panel_steps
        self._rows: Sequence[Index] = range(tile.rows)
        if tile.clamped:
            last = code.add_index(next(rest), -1)
            self._rows = [0, *(code.minimum(n, last) for n in range(1, tile.rows))]
        self._zero = code.emit(splat(0.0, self._type))
        self._masks = [self._mask(valid, n) for valid in rest for n in range(tile.vectors)]

    def write(self) -> None:
        """Emits the loads of the tile, the MACs, and the stores."""
        code = self._code
        starts = [self._offset(self._c_start, row, self._c_row) for row in self._rows]
        sums = [self._held(start, n) for start in starts for n in self._vectors]
        row_starts = [self._offset(self._a_start, row, self._a_row) for row in self._rows]
        unrolled = code.scale_index(code.quotient(self._steps, _UNROLLED), _UNROLLED)
        with code.loop(unrolled, sums, step=_UNROLLED) as loop:
            carried = loop.carried
            self._prefetch(loop.counter)
            for n in range(_UNROLLED):
                carried = self._step(code.add_index(loop.counter, n), row_starts, carried)
            loop.carry(carried)
        with code.loop(self._steps, loop.results, start=unrolled) as rest:
            rest.carry(self._step(rest.counter, row_starts, rest.carried))
        results = iter(rest.results)
        for start in starts:
            for n in self._vectors:
                self._store(next(results), start, n)

    def _prefetch(self, step: SSAValue) -> None:
        code = self._code
        share = code.scale_index(step, self._tile.line_elements // _UNROLLED)
        code.add(host.PrefetchOp(self._b, code.index(code.add_index(self._ahead, share))))

    def _step(self, step: Index, row_starts: Sequence[SSAValue], sums: Sums) -> Sums:
        """Emits one step's MACs, and returns the sums."""
        code, at = self._code, self._code.index(step)
        a_shift = code.index(code.product(at, self._a_step))
        b_shift = code.index(code.product(at, self._b_step))
        b_at = code.emit(_sum(self._b_start, b_shift))
        columns = [self._column(b_at, n) for n in self._vectors]
        numbers = (self._number(start, a_shift) for start in row_starts)
        return add_products(partial(multiply_add, code.emit), numbers, columns, sums)

    def _column(self, at: SSAValue, number: int) -> SSAValue:
        """Emits the load of a vector of `b`; the next panel is a panel's size away."""
        panel, place = divmod(number, TILE_VECTORS)
        if panel:
            size = self._code.scale_index(self._panel_steps, self._tile.panel_columns * panel)
            at = self._code.index(self._code.add_index(at, size))
        return self._load(self._b, at, place)

    def _number(self, start: SSAValue, shift: SSAValue) -> SSAValue:
        """Emits the broadcast of an element of `a` to all lanes."""
        code = self._code
        place = code.emit(_sum(start, shift))
        element = VectorType(self._tile.element, [1])
        number = code.emit(vector.LoadOp(self._a, [place], element))
        return code.emit(unary(vector.BroadcastOp, number, self._type))

    @property
    def _vectors(self) -> range:
        return range(self._tile.vectors)

    def _mask(self, valid: SSAValue, number: int) -> SSAValue:
        left = self._code.add_index(valid, -number * self._tile.lanes)
        type_ = VectorType(i1, [self._tile.lanes])
        return self._code.emit(vector.CreateMaskOp([self._code.index(left)], type_))

    def _offset(self, start: SSAValue, count: Index, step: SSAValue) -> SSAValue:
        return self._code.index(self._code.add_index(start, self._code.product(step, count)))

    def _held(self, start: SSAValue, number: int) -> SSAValue:
        """Emits the initial value of a part of the tile. With `fresh` set at run time, the loaded
        values are ignored.
        """
        if self._fresh is None:
            return self._zero
        held = self._load(self._c, start, number)
        return self._code.emit(arith.SelectOp(self._fresh, self._zero, held))

    def _load(self, buffer: SSAValue, start: SSAValue, number: int) -> SSAValue:
        code = self._code
        at = code.index(code.add_index(start, number * self._tile.lanes))
        if not self._masks:
            return code.emit(vector.LoadOp(buffer, [at], self._type))
        return code.emit(
            vector.MaskedLoadOp(buffer, [at], self._masks[number], self._zero, self._type)
        )

    def _store(self, value: SSAValue, start: SSAValue, number: int) -> None:
        code = self._code
        at = code.index(code.add_index(start, number * self._tile.lanes))
        if not self._masks:
            code.add(vector.StoreOp(value, self._c, [at]))
        else:
            code.add(vector.MaskedStoreOp(self._c, [at], self._masks[number], value))


def _sum(lhs: SSAValue, rhs: SSAValue) -> arith.AddiOp:
    """Creates a sum with `create`, in a quarter of the constructor's time."""
    return arith.AddiOp.create(
        operands=[lhs, rhs], result_types=[lhs.type], properties=_MAY_OVERFLOW
    )
