"""Rewrites of ONNX models to forms that the importer supports."""

from __future__ import annotations

from onnx import ModelProto


def in_normal_form(model: ModelProto) -> ModelProto:
    """Returns the model with trip counts for loops, and without data-dependent sizes in
    branches.

    Args:
        model: checked model, which is not changed.
    """
    if not any(node.op_type in ("If", "Loop") for node in model.graph.node):
        return model
    from byoc_mlir.frontend.loops.counting import with_counted_loops
    from byoc_mlir.frontend.stages.branch_searches import with_searches_outside

    return with_counted_loops(with_searches_outside(model))
