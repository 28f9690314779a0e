"""Object files of any kind, linked in the memory of the process by LLVM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

import llvmlite.binding as llvm

from byoc_mlir.errors import ExecutionError

_LIBRARY = "native"


class LlvmImage:
    """As `linking.image.Image`, which knows less.

    Args:
        files: the object files.
        entry_points: the functions whose addresses are wanted.
        external: the addresses of what they do not define; the process' own need no mention.

    Raises:
        ExecutionError: a symbol is not defined, or a file is none.
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
        """The address of an entry point."""
        return int(self._tracker[entry_point])

    def close(self) -> None:
        """Frees the code. Nothing may call into it from here on."""
        self._tracker.close()
        self._jit.close()


@cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
