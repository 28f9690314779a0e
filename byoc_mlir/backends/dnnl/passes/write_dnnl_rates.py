"""The pass `write-dnnl-rates`: what was measured so far, into a file."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.rates import current_rates, write_rates


@dataclass(frozen=True)
class WriteDnnlRates(ModulePass):
    """Writes the times that the passes before it measured, for the option `rates`. It changes
    nothing.

    Options:
        file: the path of the JSON file.

    Raises:
        ByocError: the file cannot be written.
    """

    name = "write-dnnl-rates"
    file: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        write_rates(current_rates(), self.file)
