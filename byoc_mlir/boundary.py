"""The boundary around everything that a caller starts: only `ByocError` leaves it.

A `ByocError` passes and records the stage and the node. Other exceptions are translated, with the
original as their cause. An unexpected one is a defect, an `InternalError`; `dialects.boundary` also
knows the errors of xDSL. Interrupts, exits and warnings that a filter turned into errors pass
unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from types import UnionType

from byoc_mlir.errors import (
    ByocError,
    InternalError,
    InvalidInputError,
    OutOfMemoryError,
    SystemRefusedError,
)

STRICT_VARIABLE = "BYOC_STRICT"
"""Environment variable by which tests request all defects: `on`."""

UNLIMITED = (1 << 63) - 1
"""The largest `i64`: the limit of numbers without one."""


def raise_if_strict(error: ByocError) -> None:
    """Raises a defect that has a workaround for users, if the environment requests it, as tests
    do.
    """
    if os.environ.get(STRICT_VARIABLE) == "on":
        raise error


@contextmanager
def boundary(stage: str, node: str | None = None) -> Generator[None]:
    """Translates exceptions in the context to `ByocError`.

    Args:
        stage: stage of the work in the context.
        node: ONNX node of the work.
    """
    try:
        yield
    except ByocError as error:
        error.locate(stage, node)
        raise
    except Warning:
        raise
    except Exception as error:
        raise translated(error, stage, node) from error


def translated(error: Exception, stage: str, node: str | None = None) -> ByocError:
    """Returns the `ByocError` for another exception."""
    at = f"{stage}, node '{node}'" if node else stage
    found: ByocError
    if isinstance(error, MemoryError):
        detail = f": {error}" if str(error) else ""
        found = OutOfMemoryError(f"{at}: there is not enough memory{detail}")
    elif isinstance(error, OSError):
        found = SystemRefusedError(f"{at}: the operating system refused: {error}")
    else:
        return InternalError(error, stage, node)
    found.locate(stage, node)
    return found


def value_refused(
    what: str, found: int, least: int, most: int, node: str | None = None
) -> InvalidInputError:
    """Returns the error for a number that is an input of a model, or that it computed."""
    at = f"node '{node}': " if node else ""
    accepted = f"{least} or more" if most == UNLIMITED else f"{least} to {most}"
    error = InvalidInputError(f"{at}{what} is {found}; accepted are {accepted}")
    error.locate("run", node)
    return error


def check_argument(
    name: str,
    value: object,
    kinds: type | UnionType,
    accepted: str,
    error: type[ByocError] = ByocError,
) -> None:
    """Refuses an argument of another type than documented.

    Args:
        name: name of the argument.
        accepted: accepted values, in words.
        error: class of the error.

    Raises:
        ByocError: of the class given.
    """
    if not isinstance(value, kinds):
        found = f"{value!r:.200} ({type(value).__name__})"
        raise error(f"{name} is {found}; accepted is {accepted}")
