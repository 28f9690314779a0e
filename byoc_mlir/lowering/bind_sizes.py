"""The pass `bind-sizes`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    MemRefType,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from byoc_mlir.abi import ARENA_BYTES, ARENA_SIZE
from byoc_mlir.dialects.dynamic_buffers import SizeOp
from byoc_mlir.dialects.relay import GuardOp, SymbolOp
from byoc_mlir.dialects.relay.shape import ShapeAttr, asked, at_most, names_in
from byoc_mlir.dialects.relay.symbols import asking_of, bound_symbol
from byoc_mlir.dims import Dim, Size, SizeFunction, Symbol, overflow
from byoc_mlir.dims.dim import Atom, constant_part, size_of, terms_of
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.control_flow import called_symbols
from byoc_mlir.lowering.region_calls import int_attribute
from byoc_mlir.lowering.symbols import ops_to_lower

_INDEX = IndexType()
_NO_VECTORS = ArrayAttr([StringAttr("noimplicitfloat")])
"""Attribute that disables LLVM's own vectorization. With hundreds of sizes in one block, the search
for vectors took 0.2 s, and sizes gain nothing from vectors."""

_SIZES_PLACE = 1
"""Index of the sizes among the arguments of @main, after the arena."""

_NUMBER_PLACE = 1
"""Index of the argument with a symbol's value, in a function that binds a symbol."""


class BindSizes(ModulePass):
    """Replaces symbolic sizes with values. At its start, @main computes all sizes from the values
    of symbols, which it gets as an argument. The functions that it calls get sizes as arguments. A
    function that binds a symbol gets the other symbols as arguments, and computes sizes itself.

    The pass removes the symbols and guards of the module, and disables LLVM's vectorization of
    sizes. A module without symbols stays as it is.

    ```mlir
    relay.symbol @n {min = 0, hint = 8}
    func.func @main(%arena: memref<?xi8>, %x: memref<?xf32, …>) {
      func.call @relu_0(%x) : (memref<?xf32, …>) -> ()
    …
    func.func private @relu_0(%x: memref<?xf32, …>) attributes {byoc.kernel} {
      %0 = host.size #relay.shape<[2*n]> : index
    // becomes
    func.func @main(%arena: memref<?xi8>, %sizes: memref<1xi64>, %x: memref<?xf32, …>)
        attributes {passthrough = ["noimplicitfloat"]} {
      %0 = memref.load %sizes[%c0] : memref<1xi64>
      …
      func.call @relu_0(%x, %2) : (memref<?xf32, …>, index) -> ()
    …
    func.func private @relu_0(%x: memref<?xf32, …>, %0: index) attributes {byoc.kernel} {
    ```
    """

    name = "bind-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with asking_of(op):
            symbols = [inner for inner in op.ops if isinstance(inner, SymbolOp)]
            if not symbols:
                return
            binder = _Binder(op)
            main = binder.functions.get("main")
            if main is not None:
                sizes = [one.size for one in ops_to_lower(op) if isinstance(one, SizeOp)]
                _refuse_overflow(main, sizes)
                binder.pass_sizes(main)
                bound = set(map(bound_symbol, binder.functions.values()))
                names = [symbol.sym_name.data for symbol in symbols]
                _take_given(main, [name for name in names if name not in bound])
            for inner in [*symbols, *(inner for inner in op.ops if isinstance(inner, GuardOp))]:
                Rewriter.erase_op(inner)


def _refuse_overflow(main: func.FuncOp, sizes: Iterable[Size]) -> None:
    """Extends the arena so that allocation fails for symbols whose sizes overflow `i64`."""
    facts = asked()
    more = overflow(sizes, {name: facts.ranges[name] for name in facts.bound})
    if more != 0:
        size = main.attributes.get(ARENA_SIZE)
        known = size.data[0] if isinstance(size, ShapeAttr) else int_attribute(main, ARENA_BYTES)
        main.attributes[ARENA_SIZE] = ShapeAttr((known + more,))


class _Binder:
    """Converter of sizes to arguments; it processes a function's callees before the function."""

    def __init__(self, module: ModuleOp):
        self.functions = {
            op.sym_name.data: op
            for op in module.ops
            if isinstance(op, func.FuncOp) and op.body.blocks
        }
        self._taken: dict[str, Sequence[Size]] = {}

    def pass_sizes(self, caller: func.FuncOp) -> None:
        """Appends to each call in `caller` the sizes that the called function takes."""
        for call, symbol in called_symbols(caller):
            sizes = [SizeOp(size) for size in self._sizes_of(symbol)]
            block = call.parent
            if sizes and block is not None:
                block.insert_ops_before(sizes, call)
                call.operands = [*call.operands, *(size.value for size in sizes)]

    def _sizes_of(self, symbol: str) -> Sequence[Size]:
        """Returns the sizes that a kernel, a branch or a loop's body takes as arguments."""
        if symbol not in self._taken:
            function = self.functions.get(symbol)
            self._taken[symbol] = () if function is None else self._take(function)
        return self._taken[symbol]

    def _take(self, function: func.FuncOp) -> Sequence[Size]:
        self.pass_sizes(function)
        bound = bound_symbol(function)
        return _take_sizes(function) if bound is None else _take_symbols(function, bound)


def _take_sizes(function: func.FuncOp) -> Sequence[Size]:
    """Converts the sizes that a function uses to arguments; returns these sizes."""
    block = function.body.blocks[0]
    arguments: dict[Size, SSAValue] = {}
    for op in in_time(function.walk()):
        if isinstance(op, SizeOp):
            number = constant_part(op.size)
            varying = op.size - number
            if varying not in arguments:
                arguments[varying] = block.insert_arg(_INDEX, len(block.args))
            Rewriter.replace_op(op, (), [_plus(op, arguments[varying], number)])
    function.update_function_type()
    return tuple(arguments)


def _take_symbols(function: func.FuncOp, bound: str) -> Sequence[Size]:
    """Converts the symbols that a function uses to arguments, and computes its sizes from them.

    The symbol that the function binds gets no argument. Returns the symbols that are arguments.
    """
    block = function.body.block
    wanted = [op.size for op in function.walk() if isinstance(op, SizeOp)]
    others = sorted(names_in(wanted) - {bound})
    given: dict[str, SSAValue] = {
        name: block.insert_arg(_INDEX, len(block.args)) for name in others
    }
    _compute_sizes(function, block.args[_NUMBER_PLACE], {bound: ()}, given)
    function.update_function_type()
    return [size_of({(Symbol(name),): 1}) for name in others]


def _take_given(main: func.FuncOp, symbols: Sequence[str]) -> None:
    """Adds an argument with the values of `symbols` to @main, and computes all sizes from it."""
    if not symbols:
        return
    given = main.body.block.insert_arg(MemRefType(i64, [len(symbols)]), _SIZES_PLACE)
    given.name_hint = "sizes"
    _compute_sizes(main, given, {name: (place,) for place, name in enumerate(symbols)})
    main.update_function_type()


def _compute_sizes(
    function: func.FuncOp,
    given: SSAValue,
    places: Mapping[str, Sequence[int]],
    known: Mapping[str, SSAValue] = MappingProxyType({}),
) -> None:
    """Computes the sizes that a function uses, at its beginning.

    Symbols are in the memory `given` (at `places`), or are the values `known`.
    """
    first = function.body.block.first_op
    assert first is not None
    writer = _SizeBuilder(Builder(InsertPoint.before(first)), given, places, known)
    wanted = [op for op in function.walk() if isinstance(op, SizeOp)]
    values = [writer.value(op.size) for op in wanted]
    for op, value in zip(wanted, values, strict=True):
        Rewriter.replace_op(op, (), [value])
    function.attributes["passthrough"] = _NO_VECTORS


def _plus(op: SizeOp, value: SSAValue, number: int) -> SSAValue:
    """Returns `value + number`, computed before `op`.

    Sizes that differ by a constant share one argument, so that LLVM can see which elements are
    adjacent.
    """
    if number == 0:
        return value
    builder = Builder(InsertPoint.before(op))
    constant = builder.insert(arith.ConstantOp.from_int_and_width(number, _INDEX)).result
    no_wrap = arith.IntegerOverflowAttr([arith.IntegerOverflowFlag.NSW])
    return builder.insert(arith.AddiOp(value, constant, _INDEX, no_wrap)).result


class _SizeBuilder:
    """Builder of the arithmetic of sizes; it emits each subexpression once."""

    def __init__(
        self,
        builder: Builder,
        given: SSAValue,
        places: Mapping[str, Sequence[int]],
        known: Mapping[str, SSAValue],
    ):
        """Takes symbols in memory (`given`, at their `places`) or as values (`known`)."""
        self._builder = builder
        self._given = given
        self._places = places
        self._sizes: dict[Size, SSAValue] = {}
        self._atoms: dict[Atom, SSAValue] = {Symbol(name): size for name, size in known.items()}

    def value(self, size: Size) -> SSAValue:
        """Returns a size as an SSA value."""
        if size not in self._sizes:
            self._sizes[size] = self._sum(size) if isinstance(size, Dim) else self._number(size)
        return self._sizes[size]

    def _number(self, number: int) -> SSAValue:
        return self._builder.insert(arith.ConstantOp.from_int_and_width(number, _INDEX)).result

    def _sum(self, size: Dim) -> SSAValue:
        total: SSAValue | None = None
        for monomial, factor in terms_of(size):
            product = None if factor == 1 and monomial else self.value(factor)
            for item in monomial:
                atom = self._atom(item)
                product = atom if product is None else self._binary(arith.MuliOp, product, atom)
            assert product is not None
            total = product if total is None else self._binary(arith.AddiOp, total, product)
        assert total is not None
        return total

    def _atom(self, item: Atom) -> SSAValue:
        if item not in self._atoms:
            self._atoms[item] = self._symbol(item) if isinstance(item, Symbol) else self._call(item)
        return self._atoms[item]

    def _symbol(self, item: Symbol) -> SSAValue:
        place = [self.value(index) for index in self._places[item.name]]
        loaded = self._builder.insert(memref.LoadOp.get(self._given, place)).res
        return self._builder.insert(arith.IndexCastOp(loaded, _INDEX)).result

    def _call(self, item: SizeFunction) -> SSAValue:
        if item.kind == "floordiv":
            _check_divisor(item)
        ops = {"floordiv": arith.FloorDivSIOp, "max": arith.MaxSIOp, "min": arith.MinSIOp}
        first, *others = map(self.value, item.arguments)
        for other in others:
            first = self._binary(ops[item.kind], first, other)
        return first

    def _binary(
        self, op: type[arith.SignlessIntegerBinaryOperation], lhs: SSAValue, rhs: SSAValue
    ) -> SSAValue:
        return self._builder.insert(op(lhs, rhs, _INDEX)).result


def _check_divisor(item: SizeFunction) -> None:
    """Checks that a divisor is at least 1, because native code must not divide by 0.

    Raises:
        UndecidedSizeError: the divisor may be 0.
    """
    divisor = item.arguments[1]
    if not at_most(1, divisor):
        raise UndecidedSizeError(f"{item.key}: the divisor may be 0")
