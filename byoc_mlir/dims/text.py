"""Parser of sizes as text, `2*batch*seq + 1` or `max(floordiv(h, 2), 1)`, as `str(Dim)` prints."""

from __future__ import annotations

import re
from typing import Protocol

from byoc_mlir.dims.bounds import largest, smallest
from byoc_mlir.dims.dim import Size, ceildiv, floordiv, symbol
from byoc_mlir.errors import UndecidedSizeError


class Tokens(Protocol):
    """Source of tokens; each method consumes the next token if it has that kind."""

    def punctuation(self, spelling: str) -> bool:
        """True if the next token is that sign: one of `+-*(),`."""
        ...

    def number(self) -> int | None:
        """Returns an integer without a sign; `None` for other tokens."""
        ...

    def name(self) -> str | None:
        """Returns a bare identifier; `None` for other tokens."""
        ...

    def quoted(self) -> str | None:
        """Returns the content of a quoted text; `None` for other tokens."""
        ...


def parse_size(text: int | str) -> Size:
    """Parses a size from text; returns a number as it is.

    Raises:
        UndecidedSizeError: the text is no size.
    """
    if isinstance(text, int):
        return text
    tokens = _Text(text)
    size = read_size(tokens)
    tokens.check_end()
    return size


def read_size(tokens: Tokens) -> Size:
    """Parses a size, a sum, from the next tokens.

    Raises:
        UndecidedSizeError: the tokens are no size.
    """
    size = -_read_product(tokens) if tokens.punctuation("-") else _read_product(tokens)
    while True:
        if tokens.punctuation("+"):
            size = size + _read_product(tokens)
        elif tokens.punctuation("-"):
            size = size - _read_product(tokens)
        else:
            return size


def _read_product(tokens: Tokens) -> Size:
    size = _read_factor(tokens)
    while tokens.punctuation("*"):
        size = size * _read_factor(tokens)
    return size


def _read_factor(tokens: Tokens) -> Size:
    number = tokens.number()
    if number is not None:
        return number
    quoted = tokens.quoted()
    if quoted is not None:
        return symbol(quoted)
    if tokens.punctuation("("):
        size = read_size(tokens)
        _expect(tokens, ")")
        return size
    name = tokens.name()
    if name is None:
        raise UndecidedSizeError("expected a number, a symbol or a function of sizes")
    return _called(name, _read_arguments(tokens)) if tokens.punctuation("(") else symbol(name)


def _read_arguments(tokens: Tokens) -> list[Size]:
    arguments = [read_size(tokens)]
    while tokens.punctuation(","):
        arguments.append(read_size(tokens))
    _expect(tokens, ")")
    return arguments


def _called(name: str, arguments: list[Size]) -> Size:
    if name in ("max", "min"):
        return largest(*arguments) if name == "max" else smallest(*arguments)
    if name not in ("floordiv", "ceildiv", "mod") or len(arguments) != 2:
        raise UndecidedSizeError(
            f"'{name}' of {len(arguments)} sizes is no size; accepted are floordiv, ceildiv and mod"
            " of two, max and min"
        )
    one, two = arguments
    if name == "mod":
        return one - two * floordiv(one, two)
    return floordiv(one, two) if name == "floordiv" else ceildiv(one, two)


def _expect(tokens: Tokens, spelling: str) -> None:
    if not tokens.punctuation(spelling):
        raise UndecidedSizeError(f"expected '{spelling}' in a size")


_TOKEN = re.compile(
    r"\s*(?:(?P<number>[0-9]+)|(?P<name>[A-Za-z_][A-Za-z0-9_$.]*)"
    r'|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<sign>[-+*(),]))'
)


class _Text:
    """Tokens of a string."""

    def __init__(self, text: str):
        self._text = text
        self._place = 0

    def punctuation(self, spelling: str) -> bool:
        return self._take("sign", spelling) is not None

    def number(self) -> int | None:
        found = self._take("number")
        return None if found is None else int(found)

    def name(self) -> str | None:
        return self._take("name")

    def quoted(self) -> str | None:
        found = self._take("quoted")
        return None if found is None else re.sub(r"\\(.)", r"\1", found)

    def check_end(self) -> None:
        """Checks that no text is left."""
        rest = self._text[self._place :].strip()
        if rest:
            raise UndecidedSizeError(f"'{rest}' is no part of the size in '{self._text}'")

    def _take(self, kind: str, wanted: str | None = None) -> str | None:
        found = _TOKEN.match(self._text, self._place)
        if found is None or found.lastgroup != kind or wanted not in (None, found[kind]):
            return None
        self._place = found.end()
        return found[kind]
