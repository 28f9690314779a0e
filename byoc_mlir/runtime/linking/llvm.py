"""Links object files of any kind in the memory of the process with LLVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm

from byoc_mlir.errors import ExecutionError

_LIBRARY = "native"


class LlvmImage:
    """Object files that LLVM links, with more features than `linking.image.LinkedImage`.

    Args:
        files: the object files.
        entry_points: functions whose addresses are needed.
        external: addresses of symbols that the files do not define; symbols of the process are
            found without this argument.

    Raises:
        ExecutionError: a symbol is not defined, or a file is no object file.
    """

    def __init__(
        self, files: Sequence[bytes], entry_points: Sequence[str], external: Mapping[str, int]
    ):
        builder = llvm.JITLibraryBuilder().add_current_process()
        for data in files:
            builder.add_object_img(data)
        for name in entry_points:
            builder.export_symbol(name)
        for name, address in external.items():
            builder.import_symbol(name, address)
        _initialise()
        # One JIT per image: closing it frees everything, and images share no names.
        self._jit = llvm.create_lljit_compiler(use_jit_link=True, suppress_errors=True)
        try:
            self._tracker = builder.link(self._jit, _LIBRARY)
        except RuntimeError as error:
            raise ExecutionError(str(error)) from error

    def address(self, entry_point: str) -> int:
        """Returns the address of an entry point."""
        return int(self._tracker[entry_point])

    def close(self) -> None:
        """Frees the code. No call may use it afterwards."""
        self._tracker.close()
        self._jit.close()


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
