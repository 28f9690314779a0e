"""Regions that run in Python: their modules, and the functions that native code calls."""

from __future__ import annotations

import ctypes
import importlib
import threading
from collections.abc import Sequence
from typing import cast

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.module import RegionModule
from byoc_mlir.runtime.program import Array, PythonRegion
from byoc_mlir.runtime.system.memory import array_at, c_array, function_address
from byoc_mlir.tensors import TensorInfo

_RegionFunction = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)


class Callbacks:
    """C functions of a loaded program's regions that run in Python, and their last errors."""

    def __init__(self) -> None:
        self._modules: dict[tuple[str, bytes], RegionModule] = {}
        self._functions: list[object] = []
        """C functions, which live as long as code may call them."""
        self._errors = threading.local()

    def address(self, region: PythonRegion) -> int:
        """Returns the address of a C function for a region.

        Raises:
            ExecutionError: the region cannot be loaded.
        """
        key = (region.loader, region.data)
        if key not in self._modules:
            self._modules[key] = _load_module(region)
        function = self._modules[key].get_function(region.region)

        def call(inputs: int, outputs: int) -> int:
            try:
                function(_views(region.inputs, inputs), _views(region.outputs, outputs))
            except Exception as error:  # it cannot cross native frames; `take_error` returns it
                self._errors.last = error
                return 1
            return 0

        self._functions.append(_RegionFunction(call))
        return function_address(self._functions[-1])

    def take_error(self) -> Exception | None:
        """Returns and forgets the last error of a region on this thread."""
        error: Exception | None = getattr(self._errors, "last", None)
        self._errors.last = None
        return error


def _load_module(region: PythonRegion) -> RegionModule:
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


def _views(specs: Sequence[TensorInfo], addresses: int) -> list[Array]:
    """Returns arrays over the memory that a C array of pointers refers to."""
    pointers = c_array(ctypes.c_void_p, len(specs)).from_address(addresses) if specs else ()
    return [
        array_at(cast(int, pointer), spec.dtype, spec.static_shape)
        for spec, pointer in zip(specs, pointers, strict=True)
    ]
