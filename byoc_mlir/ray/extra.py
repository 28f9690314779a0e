"""Ray itself, which is an extra of the package."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from byoc_mlir.errors import MissingExtraError


def load(module: str) -> Any:
    """A module of Ray, or of what it is installed with.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"'{module}' cannot be imported ({error}); install it with `pip install"
            " 'byoc_mlir[ray]'`"
        ) from error
