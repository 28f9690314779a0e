"""Packages that few need, and that are not installed with this one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from byoc_mlir.errors import ByocError


def import_extra(module: str, extra: str) -> Any:
    """A module of a package that comes with an extra.

    Args:
        module: what to import, `torch.onnx`.
        extra: the extra of this package that installs it.

    Raises:
        ByocError: it is not installed; the message says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise ByocError(
            f"the package '{error.name}' is not installed; install it with"
            f" `pip install 'byoc_mlir[{extra}]'`"
        ) from error
