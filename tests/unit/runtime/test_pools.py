"""Executables in pools of processes, forked and spawned, compiled here and loaded from a file."""

from __future__ import annotations

from pathlib import Path

from process_models import run_script

POOLS = """
import multiprocessing, sys
import numpy as np
import byoc_mlir
from pool_work import prepare, work
from process_models import convolution, inputs

model = convolution(8)
compiled = byoc_mlir.compile(model, threads=2, fallback="allow", targets=("dnnl",))
compiled.export_library(sys.argv[1])
expected = [compiled.run(inputs(model, seed))["y"] for seed in range(4)]
for method in ("fork", "spawn"):
    for executable in (compiled, byoc_mlir.load(sys.argv[1])):
        context = multiprocessing.get_context(method)
        with context.Pool(4, prepare, (executable,)) as pool:
            found = pool.map(work, range(4), chunksize=1)
        assert all(map(np.array_equal, found, expected)), method
"""


def test_pools_of_four_run(tmp_path: Path) -> None:
    run_script(POOLS, timeout=180, arguments=(str(tmp_path / "model.so"),))
