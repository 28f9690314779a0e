"""Machine code of this package, loaded into the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from byoc_mlir.abi import ENTRY_POINTS, THREADS_SYMBOL
from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.program import Array, ObjectCode
from byoc_mlir.runtime.system.huge_pages import use_huge_pages

_LIBRARY = "native"


def link(code: ObjectCode, symbols: Mapping[str, int], threads: int) -> NativeModule:
    """Loads object code with its weights bound.

    Raises:
        ExecutionError: a symbol is missing.
    """
    use_huge_pages(code.weights.values())
    variable = np.array([threads], np.int32)
    data = {**code.weights, THREADS_SYMBOL: variable}
    addresses = {name: int(array.ctypes.data) for name, array in data.items()}
    entry_points = [entry.symbol for entry in ENTRY_POINTS]
    module = NativeModule(code.data, entry_points, {**symbols, **addresses}, code.kernels)
    module.keep(data)
    return module


class NativeModule:
    """One object file, linked and ready to call.

    `entry_points` are the functions whose addresses are wanted, `external_symbols` the addresses of
    functions outside of the process's global symbols (a vendor library opened privately). Symbols
    of the process, such as those of the C library, are found without being named. `others` are
    object files to be linked with it. Raises `ExecutionError` when a symbol is missing.

    The code lives until `close`, or until the module is no longer referenced.
    """

    def __init__(
        self,
        object_code: bytes,
        entry_points: Sequence[str],
        external_symbols: Mapping[str, int] | None = None,
        others: Sequence[bytes] = (),
    ) -> None:
        builder = llvm.JITLibraryBuilder().add_object_img(object_code).add_current_process()
        for other in others:
            builder.add_object_img(other)
        for name in entry_points:
            builder.export_symbol(name)
        for name, address in (external_symbols or {}).items():
            builder.import_symbol(name, address)
        _initialise_llvm()
        # One JIT per module: closing it frees everything, and modules share no names.
        self._jit = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
        try:
            self._tracker = builder.link(self._jit, _LIBRARY)
        except RuntimeError as error:
            raise ExecutionError(
                f"native code cannot be linked: {error}; it needs, besides what the process has: "
                f"{', '.join(external_symbols or {}) or 'nothing'}"
            ) from error
        self._addresses = {name: int(self._tracker[name]) for name in entry_points}
        self._kept: Mapping[str, Array] = {}

    def keep(self, data: Mapping[str, Array]) -> None:
        """Keeps arrays alive as long as the code, which refers to their memory."""
        self._kept = data

    def address(self, entry_point: str) -> int:
        """The address of an entry point. Raises `ExecutionError` after `close`, or if unknown."""
        if entry_point not in self._addresses:
            known = ", ".join(self._addresses) or "none; the module may be closed"
            raise ExecutionError(
                f"{entry_point} is no entry point of the native code; there are: {known}"
            )
        return self._addresses[entry_point]

    def close(self) -> None:
        """Frees the code. Nothing may call into it from here on."""
        self._addresses = {}
        self._tracker.close()
        self._jit.close()

    def __enter__(self) -> NativeModule:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@cache
def _initialise_llvm() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
