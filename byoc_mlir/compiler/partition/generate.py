"""Code for the outlined regions; what a backend cannot compile goes back to the host."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from byoc_mlir.abi import COMPILER
from byoc_mlir.backends import Backend, CodegenContext
from byoc_mlir.backends.generate import RegionCode, generate_all
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.errors import BackendError, ByocError, FallbackForbiddenError
from byoc_mlir.ir_dump import dump_text, located_text
from byoc_mlir.lowering.region_calls import RegionCall, region_functions
from byoc_mlir.transforms.inline_partitions import inline_partitions


@dataclass(frozen=True)
class GeneratedRegions:
    """The code of every region, in the module's order, and what went wrong on the way."""

    codes: tuple[RegionCode, ...]
    problems: tuple[str, ...]


def generate_regions(
    context: Context, module: ModuleOp, backends: Sequence[Backend], options: CompileOptions
) -> GeneratedRegions:
    """Asks the backends for their regions' code. A region that fails is inlined into its callers.

    Raises:
        BackendError: a region is for none of the backends; a user drew it.
        FallbackForbiddenError: one failed, and `fallback` is `"forbid"`.
    """
    _check_compilers(module, backends)
    answers: dict[str, RegionCode | Exception] = {}
    for backend in backends:
        regions = [func for func in region_functions(module) if _compiler(func) == backend.name]
        found = generate_all(backend, regions, CodegenContext(options.threads), context)
        answers |= {
            region.sym_name.data: answer for region, answer in zip(regions, found, strict=True)
        }
    codes: list[RegionCode] = []
    problems: dict[FuncOp, str] = {}
    for region in region_functions(module):
        symbol = region.sym_name.data
        answer = answers[symbol]
        if isinstance(answer, RegionCode):
            codes.append(answer)
            continue
        dump_text(f"{symbol}.failed.mlir", lambda region=region: located_text(_alone(region)))
        dump_text(f"{symbol}.failed.txt", lambda answer=answer: _with_trace(answer))
        attempt = f"{_compiler(region)} could not compile @{symbol}"
        problem = f"compile_failed: {attempt}: {_words(answer)}"
        if options.fallback == "forbid":
            raise FallbackForbiddenError(problem) from answer
        problems[region] = problem
    if problems:
        inline_partitions(module, problems)
        module.verify()
    return GeneratedRegions(tuple(codes), tuple(problems.values()))


def declare_regions(module: ModuleOp, codes: Sequence[RegionCode]) -> None:
    """Replaces the regions' bodies, now compiled, by declarations that say how to call them."""
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
            code.hooks,
        ).attach(declaration)
        module.body.block.insert_op_before(declaration, region)
        region.detach()
        region.erase()


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


def _alone(region: FuncOp) -> ModuleOp:
    """A module with nothing but a region."""
    return ModuleOp([region.clone()])


def _with_trace(error: Exception) -> str:
    """An error as Python shows it, for who writes the backend."""
    return "".join(traceback.format_exception(error))


def _words(error: Exception) -> str:
    """What an error says; with its type, where it is not one of ours: `KeyError: 'sigmoid'`. One
    that says nothing is told by where it was raised.
    """
    name, text = type(error).__name__, str(error)
    if not text:
        raised = traceback.extract_tb(error.__traceback__)[-1:]
        return f"{name}{''.join(f' in {one.filename}, line {one.lineno}' for one in raised)}"
    return text if isinstance(error, ByocError) else f"{name}: {text}"
