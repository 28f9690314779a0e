"""Translation of exceptions in code that works on IR: xDSL's errors, and the ONNX node."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from traceback import walk_tb

from xdsl.ir import Operation
from xdsl.utils.exceptions import DiagnosticException, ParseError

from byoc_mlir.boundary import boundary, translated
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.errors import ByocError, CompilationError, InvalidModelError

_OUTSIDE = "is out of range for type"
"""Part of xDSL's message for integers that do not fit in an attribute."""


@contextmanager
def ir_boundary(stage: str) -> Generator[None]:
    """Translates exceptions like `boundary`, and xDSL's errors too.

    A failed pass becomes a `CompilationError`, malformed text an `InvalidModelError`.
    """
    with boundary(stage):
        try:
            yield
        except ByocError as error:
            error.locate(stage, None if error.node else node_of(error))
            raise
        except Warning:
            raise
        except Exception as error:
            raise _translated(error, stage) from error


def _translated(error: Exception, stage: str) -> ByocError:
    node = node_of(error)
    if isinstance(error, DiagnosticException):
        found: ByocError = CompilationError(f"{stage}{f', node {node!r}' if node else ''}: {error}")
    elif isinstance(error, ParseError):
        found = InvalidModelError(f"{stage}: {error}")
    elif isinstance(error, OverflowError) or _OUTSIDE in str(error):
        found = CompilationError(
            f"{stage}{f', node {node!r}' if node else ''}: a number has no room in 64 bits: {error}"
        )
    else:
        return translated(error, stage, node)
    found.locate(stage, node)
    return found


def node_of(error: BaseException) -> str | None:
    """Returns the ONNX node of the op that was processed when an exception was raised.

    xDSL's errors carry no op, but passes keep their current op in a local variable. The function
    searches the calls from the innermost outward for the first op with a location.
    """
    for frame, _ in reversed(list(walk_tb(error.__traceback__))):
        for value in frame.f_locals.values():
            is_made = isinstance(value, Operation) and hasattr(value, "location")
            names = node_names(value) if is_made else ()
            if names:
                return ", ".join(names)
    return None
