"""Code of the outlined regions; a region that its backend cannot compile goes to the next one."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from byoc_mlir.abi import COMPILER, HOST_SPACE
from byoc_mlir.backends import Backend, CodegenContext, Target
from byoc_mlir.backends.generate import RegionCode, generate_all
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.partition.next_targets import hand_on
from byoc_mlir.errors import BackendError, ByocError, FallbackForbiddenError
from byoc_mlir.ir_dump import dump_text, located_text
from byoc_mlir.lowering.region_calls import RegionCall, region_functions

if TYPE_CHECKING:
    from byoc_mlir.compiler.devices import Uploads


def generate_regions(
    context: Context, module: ModuleOp, backends: Sequence[Backend], options: CompileOptions
) -> tuple[tuple[RegionCode, ...], list[str]]:
    """Returns the code of every region, in the module's order, and the problems of its generation.

    If a backend fails, its region's ops go to the next backends in the order of preference. Ops
    that no backend takes are inlined into the callers.

    Raises:
        BackendError: a region that the user wrote names none of the backends.
        FallbackForbiddenError: a backend failed, no other backend takes the region, and `fallback`
            is `"forbid"`.
    """
    _check_compilers(module, backends)
    codes: dict[str, RegionCode] = {}
    problems: list[str] = []
    for position, backend in enumerate(backends):
        later = _targets(backends[position + 1 :], options)
        failed: dict[FuncOp, str] = {}
        regions = [func for func in region_functions(module) if _compiler(func) == backend.name]
        answers = generate_all(backend, regions, CodegenContext(options.threads), context)
        for region, answer in zip(regions, answers, strict=True):
            if isinstance(answer, RegionCode):
                codes[answer.symbol] = answer
                continue
            failed[region] = _problem(region, answer)
            if options.fallback == "forbid" and not later:
                raise FallbackForbiddenError(failed[region]) from answer
        if failed:
            problems += failed.values()
            hand_on(module, failed, context, later)
            module.verify()
    return tuple(codes[region.sym_name.data] for region in region_functions(module)), problems


def _problem(region: FuncOp, error: Exception) -> str:
    """Returns the report's message for a region whose backend failed; writes the region to the dump
    folder, if there is one.
    """
    symbol = region.sym_name.data
    dump_text(f"{symbol}.failed.mlir", lambda: located_text(ModuleOp([region.clone()])))
    dump_text(f"{symbol}.failed.txt", lambda: "".join(traceback.format_exception(error)))
    return f"compile_failed: {_compiler(region)} could not compile @{symbol}: {_words(error)}"


def _targets(backends: Sequence[Backend], options: CompileOptions) -> Sequence[str]:
    """Returns the backends as targets, with the options that the user passed."""
    named = {Target.parse(target).name: target for target in options.targets}
    return [named.get(backend.name, backend.name) for backend in backends]


def uploads_of(codes: Sequence[RegionCode], options: CompileOptions) -> Uploads | None:
    """Returns the devices of the regions, and of inputs and outputs; `None` if there are none."""
    if not options.resident and all(code.space == HOST_SPACE for code in codes):
        return None
    from byoc_mlir.compiler.devices import Uploads

    return Uploads.of(codes, options.resident.values(), records=not options.profile)


def declare_regions(module: ModuleOp, codes: Sequence[RegionCode], uploads: Uploads | None) -> None:
    """Replaces the bodies of compiled regions by declarations.

    The declarations have the attributes that calls of the region need.
    """
    by_symbol = {code.symbol: code for code in codes}
    for region in region_functions(module):
        code = by_symbol[region.sym_name.data]
        type_ = region.function_type
        declaration = FuncOp.external(code.symbol, type_.inputs.data, type_.outputs.data)
        declaration.attributes[COMPILER] = region.attributes[COMPILER]
        native = code.native
        RegionCall(
            code.symbol,
            native.state_slots,
            native.context_slots,
            native.workspace_bytes,
            code.space,
            () if uploads is None else uploads.slots(code),
            code.hooks,
        ).attach(declaration)
        module.body.block.insert_op_before(declaration, region)
        region.detach()
        region.erase()
    if uploads is not None:
        module.body.block.add_ops(uploads.declarations())


def _check_compilers(module: ModuleOp, backends: Sequence[Backend]) -> None:
    names = [backend.name for backend in backends]
    for region in region_functions(module):
        if _compiler(region) not in names:
            raise BackendError(
                f"region @{region.sym_name.data} is annotated for '{_compiler(region)}', which is"
                f" none of the targets: {', '.join(names) or 'there are none'}"
            )


def _compiler(region: FuncOp) -> str:
    compiler = region.attributes[COMPILER]
    assert isinstance(compiler, StringAttr)
    return compiler.data


def _words(error: Exception) -> str:
    """Returns the text of an error; errors of other packages have their type in it: `KeyError:
    'sigmoid'`.

    An error without text is described by the line that raised it.
    """
    name, text = type(error).__name__, str(error)
    if not text:
        raised = traceback.extract_tb(error.__traceback__)[-1:]
        return f"{name}{''.join(f' in {one.filename}, line {one.lineno}' for one in raised)}"
    return text if isinstance(error, ByocError) else f"{name}: {text}"
