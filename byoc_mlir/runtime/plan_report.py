"""Queries of a plan for its compiled programs, and for the placement of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.plan import NOT_COMPILED, Interpreted, Leaf, Loop, Node, Staged
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.report import Report, Variant
from byoc_mlir.tensors import TensorInfo

_NO_SHAPES = f"{NOT_COMPILED} or warmup"


def program_of(node: Node) -> Program:
    """Returns the program for the shapes used last; for a model with segments, the program of the
    first segment.

    Raises:
        ExecutionError: no program is compiled.
    """
    if isinstance(node, Leaf):
        parts, missing = node.programs[-1:], _NO_SHAPES
    elif isinstance(node, Staged):
        parts, missing = node.stages[0].nodes[:1], NOT_COMPILED
    elif isinstance(node, Loop):
        parts = () if node.body is None else (node.body,)
        missing = f"the body of '{node.row.node}' is not compiled yet; call run"
    elif isinstance(node, Interpreted):
        parts, missing = (), "nodes on strings have no native code"
    else:
        parts, missing = node.nodes[-1:], _NO_SHAPES
    if not parts:
        raise ExecutionError(missing)
    (part,) = parts
    return part if isinstance(part, Program) else program_of(part)


def report_of(node: Node) -> Report:
    """Returns the placement of the ONNX nodes; for a model with segments, of the nodes in compiled
    segments.

    Raises:
        ExecutionError: nothing is compiled.
    """
    if isinstance(node, Interpreted):
        return node.report
    if isinstance(node, Loop):
        return _report_of_loop(node)
    if isinstance(node, Staged):
        reports = [report_of(part) for stage in node.stages for part in stage.nodes]
        return Report.joined(reports) if reports else program_of(node).report
    if not isinstance(node, Leaf):
        return report_of(node.nodes[-1]) if node.nodes else program_of(node).report
    report = program_of(node).report
    if all(info.is_static for info in node.inputs):
        return report
    return replace(report, variants=tuple(_variants(node)))


def _variants(leaf: Leaf) -> Iterator[Variant]:
    """Yields the imports of a model: shape-polymorphic programs, and imports with
    specialisations.
    """
    shapes: dict[Variant, list[str]] = {}
    for program in leaf.programs:
        for variant in program.report.variants:
            if program.sizes is not None:
                yield variant
            else:
                shapes.setdefault(variant, []).append(", ".join(map(_text, program.inputs)))
    for variant, texts in shapes.items():
        yield replace(variant, shapes=tuple(texts))


def _text(info: TensorInfo) -> str:
    return f"{info.name}{list(info.shape)}"


def _report_of_loop(loop: Loop) -> Report:
    if loop.body is None:
        return Report((loop.row,))
    within = report_of(loop.body)
    rows = [replace(row, node=f"{loop.row.node}/body/{row.node}") for row in within]
    return replace(within, rows=(loop.row, *rows))
