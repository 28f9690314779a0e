"""The pass `choose-schedules`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.passes import ModulePass

from byoc_mlir.calibration import using_file
from byoc_mlir.dialects.relay.symbols import asking_of
from byoc_mlir.kernels.tuned import USUAL, choice_for, took
from byoc_mlir.limits import in_time
from byoc_mlir.lowering.linalg_to_loops.schedule import (
    SCHEDULE,
    described,
    schedules_for,
)


@dataclass(frozen=True)
class ChooseSchedules(ModulePass):
    """Records the schedule of `linalg` ops in kernels, if it is not the default. The schedule is
    the one that tuning chose, or else `blocked` if the default loops would thrash L1.

    Options:
        threads: true to generate code for several threads.
        vector_bits: width of the target's vector registers in bits.
        calibration: calibration file, `compile(calibration=…)`.

    ```mlir
    linalg.generic … ins(%x : memref<32x1024xf32>) outs(%y : memref<1024x32xf32>) …
    // becomes
    linalg.generic … attrs = {schedule = "blocked"} …
    ```
    """

    name = "choose-schedules"

    threads: bool = True
    vector_bits: int = 256
    calibration: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        with using_file(self.calibration), asking_of(op):
            for function in in_time(op.ops):
                if isinstance(function, func.FuncOp) and function.body.blocks:
                    self._choose(function)

    def _choose(self, function: func.FuncOp) -> None:
        for op in function.body.block.ops:
            if not isinstance(op, linalg.GenericOp):
                continue
            candidates = schedules_for(op)
            if len(candidates) == 1:
                continue
            problem = f"{described(op)},threads{int(self.threads)},bits{self.vector_bits}"
            choice = choice_for(problem, candidates, kernel=function.sym_name.data)
            choice = choice or candidates[0]
            took(problem, choice)
            if choice != USUAL:
                op.attributes[SCHEDULE] = StringAttr(choice)
