"""The pass `write-dnnl-calibration`: writes the measurements so far to a file."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.calibration import current_calibration, write_calibration


@dataclass(frozen=True)
class WriteDnnlCalibration(ModulePass):
    """Writes the latencies that earlier passes measured, for the option `calibration`.

    The pass changes no region.

    Options:
        file: the path of the JSON file.

    Raises:
        ByocError: the file cannot be written.
    """

    name = "write-dnnl-calibration"
    file: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        write_calibration(current_calibration(), self.file)
