"""Shape-polymorphic programs: a symbolic model, compiled with sizes as arguments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from xdsl.dialects import func
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue

from byoc_mlir.abi import ARENA_BYTES, ARENA_SIZE, COMPILER
from byoc_mlir.compiler.build import Build, compiling, dump_folder
from byoc_mlir.compiler.garbage import collection_paused
from byoc_mlir.compiler.link import assemble, work_of
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.pipeline import (
    canonicalise,
    dump_import,
    generate,
    link,
    lower,
    optimise,
    partition,
)
from byoc_mlir.compiler.source import Shapes, Source, main_function
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.dialects.byoc import REASON
from byoc_mlir.dialects.locations import node_names
from byoc_mlir.dialects.relay import RelayOp
from byoc_mlir.dialects.relay.base import tensor_type
from byoc_mlir.dialects.relay.element_types import numpy_dtype
from byoc_mlir.dialects.relay.shape import ShapeAttr, asking, is_symbolic, sizes_of
from byoc_mlir.dialects.relay.symbols import facts_of
from byoc_mlir.dims import Facts, Size, greatest
from byoc_mlir.dims import Shapes as Questions
from byoc_mlir.errors import UndecidedSizeError
from byoc_mlir.frontend.model import ImportedModel
from byoc_mlir.limits import ADDRESS_SPACE
from byoc_mlir.lowering.region_calls import int_attribute
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.symbolic_sizes import LimitedTensor, SymbolicSizes
from byoc_mlir.tensors import TensorInfo


@ir_boundary("compile")
@collection_paused()
def build_dynamic(source: Source, shapes: Shapes, options: CompileOptions) -> Program | None:
    """Compiles a model with symbolic dimensions once, for all shapes with the same decisions.

    Args:
        shapes: example of input shapes, for which decisions are made.

    Returns:
        The program; `None` if sizes affect so many decisions that the model must be imported for
        these shapes only.

    Raises:
        UndecidedSizeError: a part of the model requires known sizes; the error names the node.
        ByocError: as for `compile`.
    """
    imported = None if source.symbolic is None else source.symbolic.general(shapes)
    if imported is None:
        return None
    build = Build(source, shapes, {}, options)
    build.imported = imported
    facts = facts_of(imported.module)
    questions = Questions(facts.symbols.values(), facts.guards, facts.bound.values())
    tensors = _checked_tensors(build, facts, options)
    folder = dump_folder(options.dump_ir, source, shapes)
    with compiling(build, folder), asking(questions):
        dump_import(build)
        canonicalise(build)
        partition(build)
        _refuse_regions(build)
        if options.is_default:
            _say_why(build)
        build.imported = _with_sizes(build)
        generate(build)
        lower(build)
        arena = _arena(build)
        link(build)
        optimise(build)
        program = assemble(build)
    symbols, guards = tuple(questions.symbols.values()), tuple(questions.guards)
    work = work_of(build, program.steps)
    return replace(program, sizes=SymbolicSizes(symbols, guards, arena, tensors, work))


def _checked_tensors(
    build: Build, facts: Facts, options: CompileOptions
) -> tuple[LimitedTensor, ...]:
    """Returns the tensors that may exceed the limit of memory, although they fit the address
    space.
    """
    if options.limits.tensor_bytes >= ADDRESS_SPACE:
        return ()
    bound = {name: facts.ranges[name] for name in facts.bound}
    return tuple(
        LimitedTensor(
            tuple(greatest(size, bound) for size in sizes_of(value)),
            numpy_dtype(tensor_type(value).element_type).itemsize,
            f"a result of {op.name}",
            ", ".join(node_names(op)) or None,
        )
        for op in build.module.walk()
        if isinstance(op, RelayOp)
        for value in op.results
        if is_symbolic(sizes_of(value))
    )


def _refuse_regions(build: Build) -> None:
    """Refuses regions of backends, because their sizes are constants.

    Raises:
        UndecidedSizeError: the module has such regions.
    """
    regions = [
        op.sym_name.data
        for op in build.module.ops
        if isinstance(op, func.FuncOp) and COMPILER in op.attributes
    ]
    if regions:
        raise UndecidedSizeError(
            f"the regions {', '.join(regions)} need numbers; targets=() is the host alone"
        )


def _say_why(build: Build) -> None:
    """Records why no backend ran any node, for users who named no targets."""
    for op in build.module.walk():
        if isinstance(op, RelayOp):
            op.attributes[REASON] = StringAttr("one program of the host serves all shapes")


def _with_sizes(build: Build) -> ImportedModel:
    """Returns the model, with inputs and outputs that have the sizes of the module's arguments and
    results.
    """
    block = main_function(build.module).body.block
    last = block.last_op
    assert isinstance(last, func.ReturnOp)
    imported = build.imported
    return replace(
        imported,
        inputs=_symbolic(imported.inputs, block.args),
        outputs=_symbolic(imported.outputs, last.arguments),
    )


def _symbolic(infos: Iterable[TensorInfo], values: Iterable[SSAValue]) -> tuple[TensorInfo, ...]:
    """Returns inputs or outputs with the sizes of the given values; symbolic sizes become text."""
    return tuple(
        replace(
            info,
            shape=tuple(size if isinstance(size, int) else str(size) for size in sizes_of(value)),
        )
        for info, value in zip(infos, values, strict=True)
    )


def _arena(build: Build) -> Size:
    """Returns the size of the arena in bytes."""
    size = build.module.attributes.get(ARENA_SIZE)
    if isinstance(size, ShapeAttr):
        return size.data[0]
    return int_attribute(build.module, ARENA_BYTES)
