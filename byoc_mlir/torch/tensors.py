"""Tensors of PyTorch as numpy arrays of the same memory, and back."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.extras import import_extra
from byoc_mlir.runtime.program import Array

EXTRA = "torch"

_NAMES = ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_EXTENDED = {name: np.dtype(getattr(ml_dtypes, name)) for name in _NAMES}
"""Types of which PyTorch creates no arrays, by their name in PyTorch."""


@cache
def pytorch(module: str = "torch") -> Any:
    """Imports PyTorch, or a module of it.

    Raises:
        ByocError: it is not installed.
    """
    return import_extra(module, EXTRA)


def array_of(tensor: Any, what: str) -> Array:
    """Returns an array that shares a tensor's memory; complex elements are pairs along a last axis.

    Args:
        tensor: a tensor of PyTorch, in the processor's memory.
        what: the tensor's name, for errors.

    Raises:
        InvalidInputError: the tensor is elsewhere, sparse, of another type, or requires a gradient.
    """
    try:
        array = tensor.numpy()
        return array if array.dtype.kind != "c" else pytorch().view_as_real(tensor).numpy()
    except (RuntimeError, TypeError):
        return _array_of_another(tensor, what)


def _array_of_another(tensor: Any, what: str) -> Array:
    """Returns the array of a tensor that PyTorch does not convert: `bfloat16`, parameters, and the
    like.
    """
    torch = pytorch()
    if tensor.requires_grad and torch.is_grad_enabled():
        raise InvalidInputError(
            f"{what} requires a gradient, and compiled modules have none; call the module under"
            " torch.no_grad(), or detach the tensor"
        )
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise InvalidInputError(
            f"{what} is a tensor on '{tensor.device}' of layout {tensor.layout}; accepted are"
            " dense tensors on 'cpu'"
        )
    plain = tensor.detach().resolve_conj().resolve_neg()
    if tensor.is_complex():
        return torch.view_as_real(plain).numpy()
    extended = _EXTENDED.get(str(tensor.dtype).removeprefix("torch."))
    if extended is not None:
        return (
            plain.view(torch.int16 if extended.itemsize == 2 else torch.uint8)
            .numpy()
            .view(extended)
        )
    try:
        return plain.numpy()
    except (RuntimeError, TypeError) as error:
        raise InvalidInputError(
            f"{what} is of {tensor.dtype}: {error}; convert it first"
        ) from error


def tensor_of(array: Array) -> Any:
    """Returns a tensor that shares an array's memory."""
    torch = pytorch()
    if array.dtype.name in _EXTENDED:
        plain = array.view(np.int16 if array.itemsize == 2 else np.uint8)
        return torch.from_numpy(plain).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(array)
