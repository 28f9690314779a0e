"""Complete plans, which contain all their programs, such as plans in files."""

from __future__ import annotations

from byoc_mlir.limits import DEFAULT_LIMITS
from byoc_mlir.runtime.execution.dynamic_leaf import DynamicLeaf
from byoc_mlir.runtime.execution.leaf import LoadedLeaf
from byoc_mlir.runtime.execution.loop import LoadedLoop
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.execution.staged import LoadedStaged
from byoc_mlir.runtime.plan import Leaf, Loop, Node, Staged


def loaded(node: Node) -> LoadedNode:
    """Returns a complete node, loaded; it refuses inputs for which it has no program."""
    if isinstance(node, Leaf):
        if all(info.is_static for info in node.inputs):
            return LoadedLeaf(node.programs[-1], DEFAULT_LIMITS)
        return DynamicLeaf(node, None, DEFAULT_LIMITS)
    if isinstance(node, Loop):
        assert node.body is not None
        return LoadedLoop(node, {}, None, loaded(node.body))
    assert isinstance(node, Staged), "others are written to no file"
    stages = {number: loaded(stage.nodes[-1]) for number, stage in enumerate(node.stages)}
    return LoadedStaged(node, None, stages)
