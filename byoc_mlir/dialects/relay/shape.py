"""Sizes in tensor types and properties: numbers, and `Dim`s for symbolic sizes.

`tensor<?x?x384xf32, #relay.shape<[batch, seq, 384]>>` names every size. The symbols are ops of the
module, `relay.symbol` (see `symbols.py`). Comparisons use the facts that `asking` has set.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeAlias, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dims import Dim, Facts, Size, SymbolInfo, symbols_of
from byoc_mlir.dims.text import read_size
from byoc_mlir.errors import UndecidedSizeError

Tensor: TypeAlias = TensorType[Attribute]

DYNAMIC = DYNAMIC_INDEX
"""Unknown size without a name: `?` in a type without `#relay.shape`."""


@irdl_attr_definition
class ShapeAttr(Data[tuple[Size, ...]]):
    """Attribute `#relay.shape<[batch, 2*seq + 1, 384]>`: sizes, of which some are symbolic."""

    name = "relay.shape"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Size, ...]:
        tokens = _ParserTokens(parser)
        try:
            with parser.in_angle_brackets():
                return tuple(
                    parser.parse_comma_separated_list(
                        parser.Delimiter.SQUARE, lambda: read_size(tokens)
                    )
                )
        except UndecidedSizeError as error:
            parser.raise_error(str(error))

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<[{', '.join(map(str, self.data))}]>")


@irdl_attr_definition
class SizeAttr(Data[Dim]):
    """Attribute `#relay.size<2*seq + 1>`: a symbolic size."""

    name = "relay.size"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dim:
        try:
            with parser.in_angle_brackets():
                size = read_size(_ParserTokens(parser))
        except UndecidedSizeError as error:
            parser.raise_error(str(error))
        if isinstance(size, int):
            parser.raise_error(f"{size} is a number; write it as such")
        return size

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


class _ParserTokens:
    """Adapter that passes the tokens of MLIR text to `dims.text`."""

    def __init__(self, parser: AttrParser):
        self._parser = parser

    def punctuation(self, spelling: str) -> bool:
        return self._parser.parse_optional_characters(spelling) is not None

    def number(self) -> int | None:
        return self._parser.parse_optional_integer(allow_boolean=False, allow_negative=False)

    def name(self) -> str | None:
        return self._parser.parse_optional_identifier()

    def quoted(self) -> str | None:
        return self._parser.parse_optional_str_literal()


def is_symbolic(sizes: Iterable[Size]) -> bool:
    """True if a size is symbolic."""
    return any(isinstance(size, Dim) for size in sizes)


def tensor_of(element_type: Attribute, sizes: Sequence[Size]) -> Tensor:
    """Returns the tensor type with these sizes; symbolic ones are named in its encoding."""
    if not is_symbolic(sizes):
        return _known_tensor(element_type, tuple(cast(Sequence[int], sizes)))
    shape = [DYNAMIC if isinstance(size, Dim) else size for size in sizes]
    return TensorType(element_type, shape, ShapeAttr(tuple(sizes)))


@lru_cache(maxsize=4096)
def _known_tensor(element_type: Attribute, shape: tuple[int, ...]) -> Tensor:
    """Returns the tensor type of a known shape; the same object for the same shape."""
    return TensorType(element_type, shape)


def tensor_type(value: SSAValue) -> Tensor:
    """Returns the type of a tensor value.

    Raises:
        VerifyException: the value is not a ranked tensor.
    """
    if not isinstance(value.type, TensorType):
        raise VerifyException(f"expected a ranked tensor, found {value.type}")
    return cast(Tensor, value.type)


def type_sizes(type_: Tensor) -> tuple[Size, ...]:
    """Returns the sizes of a tensor type: numbers, `Dim`s, and `DYNAMIC` for a `?` without name."""
    encoding = type_.encoding
    return encoding.data if type(encoding) is ShapeAttr else type_.get_shape()


def sizes_of(value: SSAValue) -> tuple[Size, ...]:
    """Returns the sizes of a tensor value, as `type_sizes`."""
    return type_sizes(tensor_type(value))


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """Returns the shape of a tensor value without symbolic sizes, `DYNAMIC` for a `?`.

    Raises:
        UndecidedSizeError: a size is symbolic.
    """
    return known_shape(tensor_type(value))


def known_shape(type_: Tensor) -> tuple[int, ...]:
    """Returns the shape of a tensor type, as `shape_of`.

    Raises:
        UndecidedSizeError: a size is symbolic.
    """
    if type(type_.encoding) is ShapeAttr:
        raise UndecidedSizeError(
            f"{type_} has symbolic sizes, where numbers are needed; specialise-dims makes them"
            " numbers"
        )
    return type_.get_shape()


def rank_of(value: SSAValue) -> int:
    """Returns the number of dimensions of a tensor value."""
    return len(tensor_type(value).shape)


def check_encoding(type_: Tensor, symbols: Iterable[str]) -> None:
    """Refuses a type whose named sizes contradict its shape, or use an undeclared symbol.

    Raises:
        VerifyException: the sizes are wrong.
    """
    encoding = type_.encoding
    if not isinstance(encoding, ShapeAttr):
        return
    shape, sizes = type_.get_shape(), encoding.data
    if len(shape) != len(sizes):
        raise VerifyException(f"{type_} names {len(sizes)} sizes, its rank is {len(shape)}")
    for axis, (given, size) in enumerate(zip(shape, sizes, strict=True)):
        if given != (DYNAMIC if isinstance(size, Dim) else size):
            found = "?" if given == DYNAMIC else given
            raise VerifyException(
                f"{type_}: dimension {axis} is {found} in the shape and {size} in its encoding"
            )
    if not is_symbolic(sizes):
        raise VerifyException(f"{type_} names sizes that are all numbers; leave the encoding out")
    unknown = sorted(names_in(sizes).difference(symbols))
    if unknown:
        raise VerifyException(
            f"{type_} names {', '.join(unknown)}; the module has no relay.symbol of that name"
        )


def names_in(sizes: Iterable[Size]) -> frozenset[str]:
    """Returns the symbols that sizes depend on."""
    return frozenset[str]().union(*map(symbols_of, sizes))


_ASKED: ContextVar[Facts | None] = ContextVar("facts", default=None)


@contextmanager
def asking(facts: Facts) -> Generator[None]:
    """Sets the facts that comparisons in type inference use: the facts of a module or of an
    import.
    """
    token = _ASKED.set(facts)
    try:
        yield
    finally:
        _ASKED.reset(token)


def asked() -> Facts:
    """Returns the current facts."""
    return _ASKED.get() or Facts()


@contextmanager
def binding(info: SymbolInfo) -> Generator[None]:
    """Adds a symbol that a function binds to the facts, while the context manager is active."""
    facts = asked()
    facts.bind(info)
    with asking(facts):
        yield


def same(one: Size, two: Size) -> bool:
    """True if two sizes are equal.

    Raises:
        UndecidedSizeError: neither a proof nor a guard decides it.
    """
    if isinstance(one, int) and isinstance(two, int):
        return one == two
    return asked().same(one, two)


def surely_same(one: Size, two: Size) -> bool:
    """True if two sizes are known to be equal, without a new guard."""
    return one == two or (is_symbolic((one, two)) and asked().surely_same(one, two))


def at_most(one: Size, two: Size) -> bool:
    """True if `one <= two`.

    Raises:
        UndecidedSizeError: neither a proof nor a guard decides it.
    """
    if isinstance(one, int) and isinstance(two, int):
        return one <= two
    return asked().at_most(one, two)


def hint(size: Size) -> int:
    """Returns the expected size, for performance decisions; adds no guard.

    Raises:
        UndecidedSizeError: a symbol has no hint.
    """
    return size if isinstance(size, int) else asked().hint(size)


def agree(one: Size, two: Size) -> bool:
    """True if two sizes are equal, or one of them is `DYNAMIC`."""
    return one == two or DYNAMIC in (one, two) or same(one, two)


def agreeing(one: Sequence[Size], two: Sequence[Size]) -> bool:
    """True if two shapes agree in rank and in every size."""
    return len(one) == len(two) and all(map(agree, one, two))
