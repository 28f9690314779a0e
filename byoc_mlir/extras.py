"""Import of optional packages, which are not installed with this one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from byoc_mlir.errors import MissingExtraError


def import_extra(module: str, extra: str) -> Any:
    """Imports a module of a package that comes with an extra.

    Args:
        module: what to import, `torch.onnx`.
        extra: the extra of this package that installs it.

    Raises:
        MissingExtraError: it, or one of its dependencies, is not installed; the message says how to
          install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"'{module}' cannot be imported: {error}; install it with `pip install"
            f" 'byoc_mlir[{extra}]'`"
        ) from error
