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

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


@cache
def pytorch(module: str = "torch") -> Any:
    """The package, or a module of it.

    Raises:
        ByocError: it is not installed.
    """
    return import_extra(module, EXTRA)


def array_of(tensor: Any, what: str) -> Array:
    """The array that shares a tensor's memory.

    Args:
        tensor: of PyTorch, on the processor.
        what: the tensor's name, for errors.

    Raises:
        InvalidInputError: the tensor is elsewhere, sparse, or wants a gradient.
    """
    try:
        return tensor.numpy()
    except (RuntimeError, TypeError):
        return _array_of_another(tensor, what)


def _array_of_another(tensor: Any, what: str) -> Array:
    """The array of a tensor that PyTorch makes none of: `bfloat16`, parameters, and the like."""
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
    if tensor.dtype == torch.bfloat16:
        return plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()


def tensor_of(array: Array) -> Any:
    """The tensor that shares an array's memory."""
    torch = pytorch()
    if array.dtype == _BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
