"""ONNX models in the forms that the importer knows."""

from __future__ import annotations

from onnx import ModelProto

from byoc_mlir.frontend.loops.counting import with_counted_loops
from byoc_mlir.frontend.stages.branch_searches import with_searches_outside


def in_normal_form(model: ModelProto) -> ModelProto:
    """The model, with loops that say how often they run and branches that find no sizes.

    Args:
        model: a checked model. It is not changed.
    """
    return with_counted_loops(with_searches_outside(model))
