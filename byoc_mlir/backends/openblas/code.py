"""Functions of the `llvm` dialect that call OpenBLAS.

OpenBLAS has threads of its own, which would compete with OpenMP's. So it is told to use none, and
a product is cut into pieces, each one call, which the threads of the run claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue

from byoc_mlir.backends.openblas.library import SET_THREADS, SGEMM, SGEMV
from byoc_mlir.backends.openblas.products import Product
from byoc_mlir.kernels.builder import POINTER, VOID, FunctionBuilder, ModuleBuilder

_ROW_MAJOR, _AS_STORED, _TRANSPOSED = 101, 111, 112
"""`CBLAS_ORDER` and `CBLAS_TRANSPOSE`."""

_FLOAT_BYTES = 4

_PIECE_PRODUCTS = 1 << 18
"""Multiplications for which another thread is worth waking: some 10 microseconds."""


def add_load(module: ModuleBuilder, region: str) -> None:
    """`R_load`: OpenBLAS computes on the thread that calls it."""
    function = module.function(f"{region}_load", (POINTER,))
    function.do(SET_THREADS, function.integer(1, i32))
    function.finish(function.integer(0, i32))


def add_product(module: ModuleBuilder, product: Product, threads: int) -> str:
    """`i32 (a, b, out)`, with a bias `i32 (a, b, bias, out)`: computes a product.

    Returns its symbol; equal products have one.
    """
    name = f"openblas_{product.count}x{product.rows}x{product.units}x{product.depth}_" + "".join(
        "ny"[flag] for flag in (*product.transposes, *product.shares, product.has_bias)
    )
    if module.has(name):
        return name
    pieces = _pieces(product, threads)
    body = _add_pieces(module, f"{name}_pieces", product, pieces)
    count = 4 if product.has_bias else 3
    function = module.function(name, (POINTER,) * count, internal=True)
    tensors = function.stack_slots(count)
    for position, tensor in enumerate(function.parameters):
        function.store(tensor, function.slot(tensors, position))
    total = function.integer(product.count * pieces)
    if product.count * pieces == 1 or threads == 1:
        function.do(body, tensors, function.integer(0), total)
    else:
        function.parallel_for(body, tensors, total)
    function.finish(function.integer(0, i32))
    return name


def _pieces(product: Product, threads: int) -> int:
    """Into how many each product of a stack is cut."""
    if product.count >= threads:
        return 1
    work = product.rows * product.units * product.depth // _PIECE_PRODUCTS
    return max(1, min(threads, work, max(product.rows, product.units)))


def _add_pieces(module: ModuleBuilder, name: str, product: Product, pieces: int) -> str:
    """`void (tensors, begin, end)`: computes some of the pieces of all products of a stack."""
    function = module.function(name, (POINTER, i64, i64), result=VOID, internal=True)
    tensors, begin, end = function.parameters
    a, b = (function.pointer(tensors, position) for position in range(2))
    bias = function.pointer(tensors, 2) if product.has_bias else None
    out = function.pointer(tensors, 3 if product.has_bias else 2)
    members = function.integer(pieces)

    def piece(index: SSAValue) -> None:
        entry, number = function.divmod(function.add(begin, index), members)
        matrices = _Matrices(
            _stacked(function, a, entry, 0 if product.shares[0] else product.rows * product.depth),
            _stacked(function, b, entry, 0 if product.shares[1] else product.depth * product.units),
            _stacked(function, out, entry, product.rows * product.units),
            bias,
        )
        longer = max(product.rows, product.units)
        first, last = function.share(function.integer(longer), number, members)
        _call_piece(function, product, matrices, first, function.subtract(last, first))

    function.loop(function.subtract(end, begin), piece)
    function.finish()
    return name


@dataclass(frozen=True)
class _Matrices:
    """Where one product of a stack reads and writes."""

    a: SSAValue
    b: SSAValue
    out: SSAValue
    bias: SSAValue | None


def _stacked(function: FunctionBuilder, base: SSAValue, entry: SSAValue, elements: int) -> SSAValue:
    """The address of a matrix of a stack; `elements` lie between two of them."""
    return function.gep(base, function.multiply(entry, elements)) if elements else base


def _call_piece(
    function: FunctionBuilder, product: Product, at: _Matrices, first: SSAValue, size: SSAValue
) -> None:
    """Computes `size` rows of a product from row `first` on, or as many columns where there are
    more of these than rows.
    """
    transpose_a, transpose_b = product.transposes
    rows, units = function.integer(product.rows), function.integer(product.units)
    a, b, out, bias = at.a, at.b, at.out, at.bias
    if product.rows >= product.units:
        rows = size
        a = function.gep(a, function.multiply(first, 1 if transpose_a else product.depth))
        out = function.gep(out, function.multiply(first, product.units))
    else:
        units = size
        b = function.gep(b, function.multiply(first, product.depth if transpose_b else 1))
        out = function.gep(out, first)
        bias = None if bias is None else function.gep(bias, first)
    depth, one = function.integer(product.depth), function.real(1.0)
    before = function.real(0.0 if bias is None else 1.0)
    if bias is not None:
        _fill_rows(function, out, bias, rows, units, product.units)
    order = function.integer(_ROW_MAJOR, i32)
    b_width = function.integer(product.depth if transpose_b else product.units)
    if product.is_vector:
        how, *sizes = (_AS_STORED, units, depth) if transpose_b else (_TRANSPOSED, depth, units)
        step = function.integer(1)
        matrix = (order, function.integer(how, i32), *sizes, one, b, b_width)
        function.do(SGEMV, *matrix, a, step, before, out, step)
        return
    a_width = function.integer(product.rows if transpose_a else product.depth)
    hows = (
        function.integer(_TRANSPOSED if flag else _AS_STORED, i32) for flag in product.transposes
    )
    operands = (one, a, a_width, b, b_width, before, out, function.integer(product.units))
    function.do(SGEMM, order, *hows, rows, units, depth, *operands)


def _fill_rows(
    function: FunctionBuilder,
    out: SSAValue,
    row: SSAValue,
    rows: SSAValue,
    units: SSAValue,
    width: int,
) -> None:
    """Writes the beginning of each row of a matrix, to which the product is added then."""
    size = function.multiply(units, _FLOAT_BYTES)

    def fill(number: SSAValue) -> None:
        place = function.gep(out, function.multiply(number, width))
        function.call("memcpy", place, row, size, result=POINTER)

    function.loop(rows, fill)
