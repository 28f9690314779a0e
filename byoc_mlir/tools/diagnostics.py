"""Diagnostics of `byoc-opt --verify-diagnostics`: errors are compared with comments, as in
`mlir-opt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from traceback import walk_tb

from xdsl.ir import Operation
from xdsl.utils.exceptions import ParseError

_EXPECTED = re.compile(
    r"expected-(error|warning|note|remark) *(?:@([+-]\d+|above|below|unknown))? *\{\{(.*)\}\}\s*$"
)


@dataclass(frozen=True)
class Diagnostic:
    """Text of an error that is raised or expected at a line; line `None` is any line."""

    kind: str
    text: str
    line: int | None

    def fits(self, found: Diagnostic) -> bool:
        """True if `found` matches this expected diagnostic."""
        is_there = None in (self.line, found.line) or self.line == found.line
        return self.kind == found.kind and self.text in found.text and is_there

    @staticmethod
    def of(error: BaseException, lines: Mapping[Operation, int]) -> Diagnostic:
        """Returns an error at the line of the op that was being processed when it was raised.

        Args:
            lines: lines of the parsed ops.
        """
        if isinstance(error, ParseError):
            return Diagnostic("error", error.msg, error.span.get_location().line)
        values = (
            value
            for frame, _ in reversed(list(walk_tb(error.__traceback__)))
            for value in frame.f_locals.values()
            if isinstance(value, Operation)
        )
        return Diagnostic("error", str(error), next((lines[v] for v in values if v in lines), None))


def expected_in(text: str) -> list[Diagnostic]:
    """Returns the diagnostics that the comments of a text expect."""
    lines = text.splitlines()
    code = [number for number, line in enumerate(lines, 1) if not _EXPECTED.search(line)]

    def line_of(place: str | None, number: int) -> int | None:
        match place:
            case "unknown":
                return None
            case "above":
                return max((one for one in code if one < number), default=0)
            case "below":
                return min((one for one in code if one > number), default=0)
            case _:
                return number + int(place or 0)

    found = ((number, _EXPECTED.search(line)) for number, line in enumerate(lines, 1))
    return [Diagnostic(m[1], m[3], line_of(m[2], number)) for number, m in found if m]


def differences(
    expected: Sequence[Diagnostic], found: Sequence[Diagnostic], offset: int
) -> Iterator[str]:
    """Yields diagnostics that were only expected, or only found.

    Args:
        offset: number of the file's lines before the text.
    """
    left = list(expected)
    for one in found:
        match = next((each for each in left if each.fits(one)), None)
        if match is None:
            yield f"{_place(one, offset)}unexpected {one.kind}: {one.text}"
        else:
            left.remove(match)
    for one in left:
        yield f'{_place(one, offset)}expected {one.kind} "{one.text}" was not produced'


def _place(one: Diagnostic, offset: int) -> str:
    return "" if one.line is None else f"line {one.line + offset}: "
