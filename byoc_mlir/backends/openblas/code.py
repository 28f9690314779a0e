"""Generation of functions in the `llvm` dialect that call OpenBLAS.

OpenBLAS has its own threads, which would compete with OpenMP's. So the code sets OpenBLAS to one
thread and splits a matmul into pieces of one call each, which the threads of the run claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.openblas.library import SET_THREADS, SGEMM, SGEMV
from byoc_mlir.backends.openblas.products import (
    AS_STORED,
    ROW_MAJOR,
    TRANSPOSED,
    BatchedGemm,
    Block,
)
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder
from byoc_mlir.kernels.module_builder import ModuleBuilder

_FLOAT_BYTES = 4

_Addresses: TypeAlias = tuple[SSAValue, SSAValue, SSAValue]
"""Addresses of operand A, operand B and the result."""

_Sizes: TypeAlias = tuple[SSAValue, SSAValue, SSAValue]
"""Rows, units and depth."""

_PIECE_PRODUCTS = 1 << 18
"""Number of MACs, some 10 microseconds, for which waking another thread pays."""


def add_load(module: ModuleBuilder, region: str) -> None:
    """Adds `R_load`, which sets OpenBLAS to compute on the calling thread."""
    function = module.function(f"{region}_load", (POINTER,))
    function.do(SET_THREADS, function.integer(1, i32))
    function.finish(function.integer(0, i32))


def add_product(module: ModuleBuilder, product: BatchedGemm, threads: int) -> str:
    """Adds `i32 (a, b, out)`, or with a bias `i32 (a, b, bias, out)`, which computes a matmul.

    Returns its symbol; equal matmuls share one function.
    """
    name = f"openblas_{product.count}x{product.rows}x{product.units}x{product.depth}_" + "".join(
        "ny"[flag] for flag in (*product.transposes, *product.shares, product.has_bias)
    )
    if product.block is not None:
        name += f"_{product.block}{'p' if product.has_panels else ''}"
    if module.has(name):
        return name
    pieces = _pieces(product, threads)
    body = _add_pieces(module, f"{name}_pieces", product, pieces)
    count = 4 if product.has_bias else 3
    function = module.function(name, (POINTER,) * count, internal=True)
    tensors = function.stack_array(function.parameters)
    total = function.integer(product.count * pieces)
    if product.count * pieces == 1 or threads == 1:
        function.do(body, tensors, function.integer(0), total)
    else:
        function.parallel_for(body, tensors, total)
    function.finish(function.integer(0, i32))
    return name


def _pieces(product: BatchedGemm, threads: int) -> int:
    """Returns the number of pieces into which each matmul of a batch is split."""
    if product.count >= threads:
        return 1
    work = product.rows * product.units * product.depth // _PIECE_PRODUCTS
    return max(1, min(threads, work, -(-max(product.rows, product.units) // product.grain)))


def _add_pieces(module: ModuleBuilder, name: str, product: BatchedGemm, pieces: int) -> str:
    """Adds `void (tensors, begin, end)`, which computes a range of the pieces of a batched
    matmul.
    """
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    tensors, begin, end = function.parameters
    a, b = (function.pointer(tensors, position) for position in range(2))
    bias = function.pointer(tensors, 2) if product.has_bias else None
    out = function.pointer(tensors, 3 if product.has_bias else 2)
    members = function.integer(pieces)

    def piece(index: SSAValue) -> None:
        entry, number = function.divmod(index, members)
        matrices = _Matrices(
            _stacked(function, a, entry, 0 if product.shares[0] else product.rows * product.depth),
            _stacked(function, b, entry, 0 if product.shares[1] else product.depth * product.units),
            _stacked(function, out, entry, product.rows * product.units),
            bias,
        )
        first, last = _share(function, product, number, members)
        _call_piece(function, product, matrices, first, function.subtract(last, first))

    function.for_range(begin, end, piece)
    function.finish()
    return name


def _share(
    function: FunctionBuilder, product: BatchedGemm, number: SSAValue, members: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """Computes the first row, or unit, of a piece and the end of its range."""
    longer, grain = max(product.rows, product.units), product.grain
    first, last = function.share(function.integer(-(-longer // grain)), number, members)
    if grain == 1:
        return first, last
    end = function.least(function.multiply(last, grain), function.integer(longer))
    return function.multiply(first, grain), end


@dataclass(frozen=True)
class _Matrices:
    """Addresses of the operands and the result of one matmul of a batch."""

    a: SSAValue
    b: SSAValue
    out: SSAValue
    bias: SSAValue | None


def _stacked(function: FunctionBuilder, base: SSAValue, entry: SSAValue, elements: int) -> SSAValue:
    """Computes the address of a matrix in a batch whose matrices are `elements` apart."""
    return function.gep(base, function.multiply(entry, elements)) if elements else base


def _call_piece(
    function: FunctionBuilder, product: BatchedGemm, at: _Matrices, first: SSAValue, size: SSAValue
) -> None:
    """Computes `size` rows of a matmul from row `first` on, or `size` columns if it has more of
    these.
    """
    transpose_a, _ = product.transposes
    rows, units = function.integer(product.rows), function.integer(product.units)
    a, b, out, bias = at.a, at.b, at.out, at.bias
    if product.is_tall:
        rows = size
        a = function.gep(a, function.multiply(first, 1 if transpose_a else product.depth))
        out = function.gep(out, function.multiply(first, product.units))
    else:
        units = size
        b = function.gep(b, function.multiply(first, _unit_stride(product)))
        out = function.gep(out, first)
        bias = None if bias is None else function.gep(bias, first)
    if bias is not None:
        _fill_rows(function, out, bias, rows, units, product.units)
    before = function.real(0.0 if bias is None else 1.0)
    if product.is_vector:
        _call_sgemv(function, product, (a, b, out), units, before)
        return
    whole = (rows, units, function.integer(product.depth))
    if product.block is None:
        _call_sgemm(function, product, (a, b, out), whole, before)
    else:
        _call_blocks(function, product, product.block, (a, b, out), whole, before)


def _call_sgemv(
    function: FunctionBuilder,
    product: BatchedGemm,
    at: _Addresses,
    units: SSAValue,
    before: SSAValue,
) -> None:
    """Computes one row of `units` columns; `before` is BLAS's `beta`, the factor of the old
    result.
    """
    a, b, out = at
    is_transposed = product.transposes[1]
    depth, step = function.integer(product.depth), function.integer(1)
    how, *sizes = (AS_STORED, units, depth) if is_transposed else (TRANSPOSED, depth, units)
    matrix = (function.integer(ROW_MAJOR, i32), function.integer(how, i32), *sizes)
    width = function.integer(product.depth if is_transposed else product.units)
    one = function.real(1.0)
    function.do(SGEMV, *matrix, one, b, width, a, step, before, out, step)


def _call_sgemm(
    function: FunctionBuilder,
    product: BatchedGemm,
    at: _Addresses,
    sizes: _Sizes,
    before: SSAValue,
) -> None:
    """Computes a range of rows and units over a range of the depth, with one SGEMM."""
    transpose_a, transpose_b = product.transposes
    a, b, out = at
    a_width = function.integer(product.rows if transpose_a else product.depth)
    b_width = function.integer(product.depth if transpose_b else _step_stride(product))
    hows = (function.integer(TRANSPOSED if flag else AS_STORED, i32) for flag in product.transposes)
    operands = (function.real(1.0), a, a_width, b, b_width, before, out)
    order, width = function.integer(ROW_MAJOR, i32), function.integer(product.units)
    function.do(SGEMM, order, *hows, *sizes, *operands, width)


def _call_blocks(
    function: FunctionBuilder,
    product: BatchedGemm,
    block: Block,
    at: _Addresses,
    sizes: _Sizes,
    before: SSAValue,
) -> None:
    """Computes like `_call_sgemm`, in blocks; all depth blocks of a tile of the result follow each
    other.
    """
    a, b, out = at
    transpose_a, _ = product.transposes
    rows, units, depth = sizes
    one = function.real(1.0)

    def of_rows(row: SSAValue, some_rows: SSAValue) -> None:
        a_row = function.gep(a, function.multiply(row, 1 if transpose_a else product.depth))
        out_row = function.gep(out, function.multiply(row, product.units))

        def of_units(unit: SSAValue, some_units: SSAValue) -> None:
            b_unit = function.gep(b, function.multiply(unit, _unit_stride(product)))
            here = function.gep(out_row, unit)

            def of_steps(step: SSAValue, steps: SSAValue) -> None:
                a_step = function.multiply(step, product.rows if transpose_a else 1)
                b_step = function.multiply(step, _step_stride(product))
                is_first = function.compare("eq", step, function.integer(0))
                places = (function.gep(a_row, a_step), function.gep(b_unit, b_step), here)
                found = function.select(is_first, before, one)
                _call_sgemm(function, product, places, (some_rows, some_units, steps), found)

            _in_blocks(function, depth, block.depth, of_steps)

        _in_blocks(function, units, block.units, of_units)

    _in_blocks(function, rows, block.rows, of_rows)


def _unit_stride(product: BatchedGemm) -> int:
    """Returns the stride from one unit of B to the next, or with panels from one panel to the
    next.
    """
    return product.depth if product.transposes[1] or product.has_panels else 1


def _step_stride(product: BatchedGemm) -> int:
    """Returns the stride along the depth of B."""
    if product.transposes[1]:
        return 1
    return product.block.units if product.block and product.has_panels else product.units


def _in_blocks(
    function: FunctionBuilder,
    total: SSAValue,
    size: int,
    body: Callable[[SSAValue, SSAValue], None],
) -> None:
    """Runs `body` with the start of each block and its extent, which is at most `size`."""

    def one(number: SSAValue) -> None:
        first = function.multiply(number, size)
        body(first, function.least(function.subtract(total, first), function.integer(size)))

    function.loop(function.divide(function.add(total, size - 1), size), one)


def _fill_rows(
    function: FunctionBuilder,
    out: SSAValue,
    row: SSAValue,
    rows: SSAValue,
    units: SSAValue,
    width: int,
) -> None:
    """Initialises the start of each row of the result with the row of the bias."""
    size = function.multiply(units, _FLOAT_BYTES)

    def fill(number: SSAValue) -> None:
        place = function.gep(out, function.multiply(number, width))
        function.call("memcpy", place, row, size, result=POINTER)

    function.loop(rows, fill)
