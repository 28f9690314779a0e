"""Scripts in forks of a process that has imported the compiler, but loaded no library.

Imports take most of the time of a small script. Libraries read their environment and the
processor's features when they are loaded, which happens in the fork.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = (
    "numpy.random",
    "onnxruntime",
    "pytest",
    "byoc_mlir.backends.dnnl.codegen.region_code",
    "byoc_mlir.backends.dnnl.codegen.run",
    "byoc_mlir.backends.dnnl.partition.quantized_patterns",
    "byoc_mlir.backends.dnnl.partition.rules",
    "byoc_mlir.backends.dnnl.partition.trial",
    "byoc_mlir.backends.dnnl.passes.prepare_dnnl_regions",
    "byoc_mlir.compiler.execution.model",
    "byoc_mlir.compiler.pipeline",
    "byoc_mlir.kernels.convolutions",
    "byoc_mlir.kernels.implicit_gemm.implicit_gemm",
    "byoc_mlir.kernels.implicit_gemm.code",
    "byoc_mlir.lowering.calibration",
    "byoc_mlir.lowering.eviction",
    "byoc_mlir.lowering.integer_products.lower_integer_products",
    "byoc_mlir.runtime.linking.native_module",
    "byoc_mlir.testing.networks",
    "byoc_mlir.testing.reference",
)
"""Modules that the compiler needs, imported before the fork so that not each fork imports them."""

CONTEXT.set_forkserver_preload([*PRELOADED])


def run_forked(
    script: str, *arguments: str, environment: Mapping[str, str] | None = None, seconds: float = 300
) -> str:
    """Runs a script as `python -c` would, with this process's search path and environment.

    Args:
        arguments: `sys.argv` after the first element.
        environment: variables besides those of this process.
        seconds: the maximum time of the script.

    Returns:
        The script's output.

    Raises:
        AssertionError: the script failed; its output is in the message.
    """
    variables = {**os.environ, **(environment or {})}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("stdout", "stderr")]
        fork = CONTEXT.Process(target=_run, args=(script, arguments, variables, os.getcwd(), files))
        fork.start()
        fork.join(seconds)
        if fork.is_alive():
            fork.kill()
            fork.join()
        printed, complaints = (file.read_text() if file.exists() else "" for file in files)
    ended = f"status {fork.exitcode} with {environment}"
    assert fork.exitcode == 0, f"{ended}\n{printed}\n{complaints}"
    return printed


def _run(
    script: str,
    arguments: Sequence[str],
    variables: Mapping[str, str],
    folder: str,
    files: Sequence[Path],
) -> None:
    for number, file in enumerate(files, 1):
        with file.open("wb") as stream:
            os.dup2(stream.fileno(), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = ["-c", *arguments]
    try:
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
    finally:
        sys.stdout.flush()
        ctypes.CDLL(None).fflush(None)  # what libraries printed
