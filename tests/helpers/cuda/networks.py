"""Kernels of models, without running them, and NVIDIA's assembler."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto
from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.cuda.kernels.compile import RegionKernels, compile_region
from byoc_mlir.compiler.pipeline import CANONICALISATION
from byoc_mlir.compiler.source import read_source
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.byoc import region_compiler
from byoc_mlir.installed import library_in_wheel
from byoc_mlir.lowering.host_pipeline import run_passes
from byoc_mlir.transforms.partition_for import PartitionFor

_REPORT = re.compile(
    r"entry function '(\w+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads"
    r".*?Used (\d+) registers",
    re.DOTALL,
)


def assembler() -> Path | None:
    """Returns the path of ptxas in its wheel, `None` if it is not installed."""
    return library_in_wheel("nvidia-cuda-nvcc", "ptxas")


def kernels_of(model: ModelProto) -> Iterator[RegionKernels]:
    """Yields the kernels of each region of a model, all of whose ops are for the GPU."""
    return map(compile_region, regions_of(model, ("cuda",), "cuda"))


def regions_of(model: ModelProto, targets: Sequence[str], backend: str) -> Iterator[FuncOp]:
    """Yields the regions that a backend gets of a model partitioned for targets."""
    context, module = make_context(), read_source(model).bind({}, {}).module
    run_passes(context, module, CANONICALISATION)
    PartitionFor(tuple(targets)).apply(context, module)
    for function in module.ops:
        if isinstance(function, FuncOp) and region_compiler(function) == backend:
            yield function


@dataclass(frozen=True)
class Usage:
    """Resources of a kernel on a GPU."""

    registers: int
    spilled: int
    """Bytes of registers that are kept in memory."""


def usage_of(assembler: Path, ptx: str, folder: Path, architecture: str) -> dict[str, Usage]:
    """Assembles PTX; returns the resources of each kernel."""
    source = folder / "kernels.ptx"
    source.write_text(ptx)
    command = [str(assembler), "-v", f"-arch={architecture}", str(source)]
    done = subprocess.run(
        [*command, "-o", str(folder / "kernels.cubin")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {
        name: Usage(int(registers), int(stores) + int(loads))
        for name, stores, loads, registers in _REPORT.findall(done.stderr)
    }
