"""The boundary around everything that a caller starts: what leaves it is a `ByocError`.

A `ByocError` passes and learns where it was raised. All else is translated, with the original as
its cause. What nobody foresaw is a defect, an `InternalError`; `dialects.boundary` knows the errors
of xDSL besides. Interrupts, exits and warnings that a filter made errors pass as they are.
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
"""The environment variable by which tests ask for all defects: `on`."""

UNLIMITED = (1 << 63) - 1
"""The largest `i64`: the limit of numbers that have none."""


def raise_if_strict(error: ByocError) -> None:
    """Raises a defect that users are spared, since there is another way; tests want to see it."""
    if os.environ.get(STRICT_VARIABLE) == "on":
        raise error


@contextmanager
def boundary(stage: str, node: str | None = None) -> Generator[None]:
    """What is raised inside leaves as a `ByocError`.

    Args:
        stage: what is done inside.
        node: the ONNX node that it is done for.
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
    """The `ByocError` for an exception that is none."""
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
    """The error for a number that a model was given or has computed."""
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
    """Refuses an argument that is not of the type that is documented.

    Args:
        name: of the argument.
        accepted: what is accepted, in words.
        error: what is raised.

    Raises:
        ByocError: of the class given.
    """
    if not isinstance(value, kinds):
        found = f"{value!r:.200} ({type(value).__name__})"
        raise error(f"{name} is {found}; accepted is {accepted}")
