"""Engine for IREE's llvm-cpu compiler with the instruction set of this machine.

The optimisation level is the default: a higher one takes twice as long and runs no faster.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import iree.compiler
import iree.runtime
import iree.runtime.flags
import numpy as np
import onnx

_OPSET = 17
"""Opset version of the default domain that the importer requires."""


class Engine:
    """Module on `threads` workers of the `local-task` device."""

    def __init__(self, model: Path, threads: int, precision: str):
        with tempfile.TemporaryDirectory() as folder:
            mlir = Path(folder) / "model.mlir"
            command = [sys.executable, "-m", "iree.compiler.tools.import_onnx", str(model)]
            subprocess.run([*command, "--opset-version", str(_OPSET), "-o", str(mlir)], check=True)
            program = iree.compiler.compile_file(
                str(mlir),
                target_backends=["llvm-cpu"],
                extra_args=["--iree-llvmcpu-target-cpu=host"],
            )
        iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        config = iree.runtime.Config("local-task")
        context = iree.runtime.SystemContext(config=config)
        context.add_vm_module(iree.runtime.VmModule.copy_buffer(context.instance, program))
        graph = onnx.load(model, load_external_data=False).graph
        self.inputs = [value.name for value in graph.input]
        self.outputs = [value.name for value in graph.output]
        self.main = context.modules.module[graph.name]

    def run(self, inputs: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the outputs by name."""
        results = self.main(*(inputs[name] for name in self.inputs))
        values = results if isinstance(results, tuple) else (results,)
        return {name: value.to_host() for name, value in zip(self.outputs, values, strict=True)}
