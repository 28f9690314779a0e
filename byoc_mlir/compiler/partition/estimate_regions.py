"""The pass `estimate-regions`: estimated latency of each region on its backend and on the host."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from byoc_mlir.backends import CodegenContext, get_backends
from byoc_mlir.calibration import using_file
from byoc_mlir.compiler.partition.host_costs import estimated_times
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.transforms.region_times import set_times


@dataclass(frozen=True)
class EstimateRegions(ModulePass):
    """Sets the estimated latencies of each outlined region on its backend and on the host, for one
    thread.

    Options:
        targets: the backends whose regions are estimated.
        threads: threads that will run the regions.
        calibration: a file of calibration, `compile(calibration=…)`; nothing is measured then.

    ```mlir
    func.func private @npu_main_0(…) -> … attributes {byoc.compiler = "npu"}
    ```

    becomes

    ```mlir
    func.func private @npu_main_0(…) -> … attributes {byoc.compiler = "npu", byoc.times =
        {backend = "npu", obtained = "estimated", backend_milliseconds = 1.2 : f64,
        host_milliseconds = 3.4 : f64}}
    ```
    """

    name = "estimate-regions"

    targets: tuple[str, ...] = ()
    threads: int = 1
    calibration: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        context = CodegenContext(self.threads)
        with using_file(self.calibration):
            backends = {backend.name: backend for backend in get_backends(self.targets)}
            for region in op.ops:
                backend = backends.get(region_compiler(region) or "")
                if isinstance(region, FuncOp) and backend is not None:
                    set_times(region, estimated_times(region, backend, context))
