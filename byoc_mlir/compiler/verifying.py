"""Implementation of `Executable.verify` and `bisect`, which imports the compiler on demand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.runtime.executable import Executable

if TYPE_CHECKING:
    from byoc_mlir.compiler.debugging.verify import Examined
    from byoc_mlir.runtime.verification import Asked, Bisection, Verification


@dataclass(frozen=True)
class Verifying:
    """Verifier of the executables of a request; of a model, it keeps only the path."""

    request: Request

    def verify(self, executable: Executable, asked: Asked) -> Verification:
        """Returns the result of `Executable.verify`."""
        return self._examined(executable, asked).verification

    def bisect(self, executable: Executable, asked: Asked) -> Bisection:
        """Returns the result of `Executable.bisect`."""
        from byoc_mlir.compiler.debugging.bisect import bisect

        return bisect(self._examined(executable, asked))

    def _examined(self, executable: Executable, asked: Asked) -> Examined:
        from byoc_mlir.compiler.debugging.verify import examine

        request = self.request
        if asked.model is not None:
            request = replace(request, model=asked.model)
        if request.model == b"":
            raise InvalidModelError(
                "the model was not given as the path of a file, and is not kept; give it to verify,"
                " as in executable.verify(inputs, model=model)"
            )
        return examine(executable, request, asked)
