"""Machine code of this package, loaded into the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from byoc_mlir.abi import ENTRY_POINTS, RUNS_SYMBOL, THREADS_SYMBOL
from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.linking.image import LinkedImage
from byoc_mlir.runtime.linking.object_file import UnknownObjectError
from byoc_mlir.runtime.program import Array, LoadedCode, ObjectCode
from byoc_mlir.runtime.system.memory import use_huge_pages
from byoc_mlir.runtime.system.threads import RUNS


def link(code: ObjectCode, symbols: Mapping[str, int], threads: int) -> NativeModule:
    """Loads object code, with its weights bound to their symbols.

    Raises:
        ExecutionError: a symbol is missing.
    """
    use_huge_pages(code.weights.values())
    variable = np.array([threads], np.int32)
    data = {**code.weights, THREADS_SYMBOL: variable, RUNS_SYMBOL: RUNS}
    addresses = {name: int(array.ctypes.data) for name, array in data.items()}
    entry_points = [entry.symbol for entry in ENTRY_POINTS]
    module = NativeModule(code.files, entry_points, {**symbols, **addresses})
    module.keep(data)
    return module


class NativeModule:
    """Linked object files, ready to be called.

    The code lives until `close`, or until the module is no longer referenced.

    Args:
        files: the object files.
        entry_points: functions whose addresses are needed.
        external_symbols: addresses of functions outside of the process' global symbols (a vendor
            library opened privately). Symbols of the process, such as those of the C library, are
            found without this argument.

    Raises:
        ExecutionError: a symbol is missing.
    """

    def __init__(
        self,
        files: Sequence[bytes],
        entry_points: Sequence[str],
        external_symbols: Mapping[str, int] | None = None,
    ) -> None:
        external = external_symbols or {}
        try:
            self._image = _linked(files, entry_points, external)
            self._addresses = {name: self._image.address(name) for name in entry_points}
        except ExecutionError as error:
            raise ExecutionError(
                f"native code cannot be linked: {error}; it needs, besides what the process has: "
                f"{', '.join(external) or 'nothing'}"
            ) from error
        self._kept: Mapping[str, Array] = {}

    def keep(self, data: Mapping[str, Array]) -> None:
        """Keeps arrays alive as long as the code, which refers to their memory."""
        self._kept = data

    def address(self, entry_point: str) -> int:
        """Returns the address of an entry point.

        Raises:
            ExecutionError: `close` was called, or the entry point is unknown.
        """
        if entry_point not in self._addresses:
            known = ", ".join(self._addresses) or "none; the module may be closed"
            raise ExecutionError(
                f"{entry_point} is no entry point of the native code; there are: {known}"
            )
        return self._addresses[entry_point]

    def close(self) -> None:
        """Frees the code. No call may use it afterwards."""
        self._addresses = {}
        self._image.close()

    def __enter__(self) -> NativeModule:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _linked(
    files: Sequence[bytes], entry_points: Sequence[str], external: Mapping[str, int]
) -> LoadedCode:
    try:
        return LinkedImage(files, external)
    except UnknownObjectError:  # LLVM knows it, or says what is wrong
        from byoc_mlir.runtime.linking.llvm import LlvmImage

        return LlvmImage(files, entry_points, external)
