"""Generation of a region's five functions from its program."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.backends.base import NativeCode
from byoc_mlir.backends.dnnl.codegen.contexts import add_close, add_open
from byoc_mlir.backends.dnnl.codegen.load import add_load, add_unload
from byoc_mlir.backends.dnnl.codegen.program import RegionProgram
from byoc_mlir.backends.dnnl.codegen.region_code import RegionFunctions
from byoc_mlir.backends.dnnl.codegen.run import add_run
from byoc_mlir.backends.dnnl.codegen.slot_layout import slot_layout
from byoc_mlir.backends.dnnl.library.calls import Descriptors
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.runtime.program import SharedLibrary


def emit(
    program: RegionProgram,
    symbol: str,
    inputs: int,
    outputs: int,
    libraries: Sequence[SharedLibrary],
    shared: ModuleBuilder,
) -> NativeCode:
    """Generates the native code of region `symbol`.

    Functions that all regions share are added to `shared`.
    """
    runs = _number_runs(program)
    layout = slot_layout(program)
    code = RegionFunctions(program, symbol, layout, shared)
    add_load(code, runs)
    add_open(code)
    add_run(code, inputs, outputs)
    add_close(code)
    add_unload(code)
    return NativeCode(
        module=code.module.module,
        shared=shared.module,
        state_slots=layout.state_slots,
        context_slots=layout.context_slots,
        workspace_bytes=program.workspace_bytes,
        constants=tuple(program.weights.values()),
        libraries=tuple(libraries),
        details=tuple(program.details),
    )


def _number_runs(program: RegionProgram) -> dict[Descriptors, int]:
    """Appends the descriptors of every array with consecutive numbers; returns the number of each
    array's first descriptor.
    """
    runs: dict[Descriptors, int] = {}
    for created in program.primitives.items:
        for argument in created.call.arguments:
            if isinstance(argument, Descriptors) and argument not in runs:
                runs[argument] = len(program.descriptors.items)
                for item in argument.items:
                    program.descriptors.append(item)
    return runs
