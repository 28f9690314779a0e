"""Regions that run in Python: their modules, and views of their tensors."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Sequence
from typing import cast

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.module import RegionModule
from byoc_mlir.runtime.program import Array, PythonRegion
from byoc_mlir.runtime.system.addresses import array_at, c_array
from byoc_mlir.tensors import TensorInfo


def load_module(region: PythonRegion) -> RegionModule:
    """Returns the module of a region.

    Raises:
        ExecutionError: its class cannot be imported, or it cannot be loaded.
    """
    module_name, _, class_name = region.loader.partition(":")
    try:
        loader: object = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError, TypeError) as error:  # no name of a module
        raise ExecutionError(
            f"region {region.region} needs the loader '{region.loader}', which cannot be"
            f" imported: {error}; install the backend's package"
        ) from error
    if not (isinstance(loader, type) and issubclass(loader, RegionModule)):
        raise ExecutionError(
            f"the loader '{region.loader}' of region {region.region} is no RegionModule;"
            " install the release of the backend's package that made the blob"
        )
    try:
        return loader.load(region.data)
    except Exception as error:  # third-party code, which may raise anything
        raise ExecutionError(
            f"region {region.region} cannot be loaded by '{region.loader}': {error}"
        ) from error


def views(specs: Sequence[TensorInfo], addresses: int) -> list[Array]:
    """Returns arrays over the memory that a C array of pointers refers to."""
    pointers = c_array(ctypes.c_void_p, len(specs)).from_address(addresses) if specs else ()
    return [
        array_at(cast(int, pointer), spec.dtype, spec.static_shape)
        for spec, pointer in zip(specs, pointers, strict=True)
    ]
