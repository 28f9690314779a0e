"""Assembly formats of ops, parsed when an op of the class is first parsed or printed.

xDSL parses the format of each op when its class is made, in a sixth of the time of the compiler's
imports. A compilation neither parses nor prints most of these ops.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.irdl import OpDef
from xdsl.irdl.declarative_assembly_format import FormatDirective, FormatProgram

from byoc_mlir.locks import cached_property

_parsed = FormatProgram.from_str


class _LateProgram(FormatProgram):
    """Format whose statements are parsed when they are first needed."""

    def __init__(self, input: str, op_def: OpDef):
        vars(self).update(source=(input, op_def))  # the base is frozen

    @cached_property
    def stmts(self) -> tuple[FormatDirective, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return _parsed(*vars(self)["source"]).stmts


@contextmanager
def formats_parsed_late() -> Generator[None]:
    """Leaves the formats of ops whose classes are made meanwhile unparsed.

    It is meant for imports of valid dialects: an error in a format is found when the op is used.
    """
    FormatProgram.from_str = staticmethod(_LateProgram)
    try:
        yield
    finally:
        FormatProgram.from_str = staticmethod(_parsed)
