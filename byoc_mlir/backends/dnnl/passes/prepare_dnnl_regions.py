"""The pass `prepare-dnnl-regions`: all of oneDNN's passes, in the order of a compilation."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.passes.pipeline import pipeline
from byoc_mlir.calibration import using_file
from byoc_mlir.ir_dump import apply_pass


@dataclass(frozen=True)
class PrepareDnnlRegions(Choices, ModulePass):
    """Runs the passes of `pipeline` in their order.

    Options:
        threads: the OpenMP threads that will run the regions.
        winograd, convolution, layout, activation: as the backend's options of these names.
        calibration: a file of calibration, `compile(calibration=…)`; nothing is measured then.
    """

    name = "prepare-dnnl-regions"
    threads: int = 1
    calibration: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with using_file(self.calibration):
            for pass_ in pipeline(self.threads, self):
                apply_pass(pass_, ctx, op)
