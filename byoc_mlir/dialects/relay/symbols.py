"""Symbolic sizes of a module: the symbols, and relations that hold between sizes.

Both are ops of the module, next to its functions:

```mlir
relay.symbol @seq {min = 1, max = 512, hint = 128}
relay.guard "<=" <[seq, batch]>
```
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import cast, get_args

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, TensorType, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.abi import BINDS
from byoc_mlir.dialects.relay.shape import (
    ShapeAttr,
    Tensor,
    asked,
    asking,
    check_encoding,
    names_in,
)
from byoc_mlir.dialects.relay.syntax import parse_properties, print_properties
from byoc_mlir.dims import Facts, Guard, Relation, SymbolInfo


@irdl_op_definition
class SymbolOp(IRDLOperation):
    """Symbolic size that inputs determine: `relay.symbol @seq {min = 1, max = 512, hint = 128}`.

    `min` (default 0) and `max` (default none) bound it. The compiler makes decisions for the size
    `hint`, which is at least 2 (the default). Performance decisions and comparisons of symbols use
    `expected` instead, if it is less than `hint`.
    """

    name = "relay.symbol"
    sym_name = prop_def(StringAttr)
    min = prop_def(IntegerAttr.constr(i64), default_value=IntegerAttr(0, i64))
    max = opt_prop_def(IntegerAttr.constr(i64))
    hint = prop_def(IntegerAttr.constr(i64), default_value=IntegerAttr(2, i64))
    expected = opt_prop_def(IntegerAttr.constr(i64))

    @classmethod
    def of(cls, info: SymbolInfo) -> SymbolOp:
        """Returns the op that declares a symbol."""
        bounds = {name: getattr(info, name) for name in _BOUNDS}
        given = {name: IntegerAttr(one, i64) for name, one in bounds.items() if one is not None}
        return cls.create(properties={"sym_name": StringAttr(info.name), **given})

    @property
    def info(self) -> SymbolInfo:
        """Returns the properties of the symbol."""
        most = None if self.max is None else self.max.value.data
        expected = None if self.expected is None else self.expected.value.data
        return SymbolInfo(
            self.sym_name.data, self.min.value.data, most, self.hint.value.data, expected
        )

    def verify_(self) -> None:
        name = self.sym_name.data
        reason = self.info.contradiction()
        if reason is not None:
            raise VerifyException(f"{self.name} @{name}: {reason}")
        module = module_of(self)
        if module is None:
            return
        named = [op for op in _symbols(module) if op.sym_name.data == name]
        if len(named) > 1:
            raise VerifyException(f"{self.name} @{name} is declared {len(named)} times")
        if next(_symbols(module)) is self:  # once for all symbols
            _check_types(module)

    @classmethod
    def parse(cls, parser: Parser) -> SymbolOp:
        name = parser.parse_symbol_name()
        given = parse_properties(parser)
        unknown = sorted(given.keys() - set(_BOUNDS))
        if unknown:
            parser.raise_error(
                f"{cls.name} has no {', '.join(unknown)}; it has min, max, hint and expected"
            )
        return cls.create(properties={"sym_name": name, **given})

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        bounds = {name: getattr(self, name) for name in _BOUNDS}
        print_properties(printer, {name: one for name, one in bounds.items() if one is not None})


_BOUNDS = ("min", "max", "hint", "expected")


@irdl_op_definition
class GuardOp(IRDLOperation):
    """Relation that holds between two sizes: `relay.guard "==" <[n, m]>`.

    The compiler made a decision that depends on the relation, for the ONNX node in the op's
    location. The module is valid for sizes that fulfil all guards.
    """

    name = "relay.guard"
    relation = prop_def(StringAttr)
    sizes = prop_def(ShapeAttr)
    assembly_format = "$relation $sizes attr-dict"

    @classmethod
    def of(cls, guard: Guard) -> GuardOp:
        """Returns the op that states a guard."""
        return cls.create(
            properties={
                "relation": StringAttr(guard.relation),
                "sizes": ShapeAttr((guard.one, guard.two)),
            }
        )

    @property
    def guard(self) -> Guard:
        """Returns the guard that the op states."""
        one, two = self.sizes.data
        return Guard(one, cast(Relation, self.relation.data), two)

    def verify_(self) -> None:
        relations = get_args(Relation)
        if self.relation.data not in relations or len(self.sizes.data) != 2:
            raise VerifyException(
                f"{self.name} has one of {', '.join(relations)} between two sizes, found"
                f" '{self.relation.data}' between {len(self.sizes.data)}"
            )
        module = module_of(self)
        known = () if module is None else facts_of(module).symbols
        unknown = sorted(names_in(self.sizes.data).difference(known))
        if unknown:
            raise VerifyException(
                f"{self.name}: {', '.join(unknown)}: the module has no relay.symbol of that name"
            )


def module_of(op: Operation) -> ModuleOp | None:
    """Returns the outermost module that contains an op, or the op itself if it is one."""
    top = op
    while (parent := top.parent_op()) is not None:
        top = parent
    return top if isinstance(top, ModuleOp) else None


def bound_symbol(function: FuncOp) -> str | None:
    """Returns the symbol that a function binds to its first argument; `None` if it binds none."""
    name = function.attributes.get(BINDS)
    return name.data if isinstance(name, StringAttr) else None


def facts_of(module: ModuleOp) -> Facts:
    """Returns the facts that the module states about sizes."""
    ops = module.body.block.ops
    guards = [op.guard for op in ops if isinstance(op, GuardOp)]
    bound = {bound_symbol(op) for op in ops if isinstance(op, FuncOp)}
    infos = [op.info for op in _symbols(module)]
    given = [info for info in infos if info.name not in bound]
    return Facts(given, guards, [info for info in infos if info.name in bound])


@contextmanager
def asking_of(module: ModuleOp) -> Generator[None]:
    """Sets the module's facts for comparisons in the context, unless facts are set already."""
    if asked().ranges:
        yield
        return
    with asking(facts_of(module)):
        yield


def _symbols(module: ModuleOp) -> Iterator[SymbolOp]:
    return (op for op in module.body.block.ops if isinstance(op, SymbolOp))


def _check_types(module: ModuleOp) -> None:
    """Refuses types in the whole module whose named sizes contradict their shapes."""
    symbols = [op.sym_name.data for op in _symbols(module)]
    for op in module.walk():
        for value in defined_values(op):
            if isinstance(value.type, TensorType):
                check_encoding(cast(Tensor, value.type), symbols)


def defined_values(op: Operation) -> Iterator[SSAValue]:
    """Yields the results of an op, and the arguments of the blocks in its regions."""
    yield from op.results
    for region in op.regions:
        for block in region.blocks:
            yield from block.args
