"""Segments of a model that are compiled, whatever the LRU cache keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime.execution import recent
from byoc_mlir.runtime.execution.node import LoadedNode
from byoc_mlir.runtime.execution.staged import LoadedStaged
from byoc_mlir.runtime.plan import PlanStage, Staged
from byoc_mlir.tensors import TensorInfo

_SIZES = np.dtype(np.int64)


class _Segment(LoadedNode):
    """Mock of a compiled segment."""

    def __init__(self, output: str):
        self.inputs, self.outputs = (), (output,)
        self.is_closed = False

    def run(self, inputs: Any, parts: Any = None) -> dict[str, Any]:
        if self.is_closed:
            raise ExecutionError("the executable is closed")
        return {self.outputs[0]: np.zeros(1)}

    def warmup(self, shapes: Any) -> None:
        raise NotImplementedError  # no test here compiles ahead

    def known(self) -> Any:
        return self.outputs[0]

    def exported(self, shapes: Any) -> Any:
        raise NotImplementedError  # no test here exports

    def close(self) -> None:
        self.is_closed = True


def test_a_segment_that_serves_all_inputs_stays_known_and_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[_Segment] = []

    def compiled(number: int, arrays: Mapping[str, Any]) -> LoadedNode:
        made.append(_Segment("xy"[number]))
        return made[-1]

    inputs = TensorInfo("a", _SIZES, ("n",)), TensorInfo("b", np.dtype(np.float32), (1,))
    stages = PlanStage(("b",)), PlanStage(("a",), sizes=("a",))
    monkeypatch.setattr(recent, "CACHED_SHAPES", 2)
    node = LoadedStaged(Staged(inputs, ("y",), stages), compiled, {})
    for count in range(1, 7):  # more numbers of sizes than the cache keeps
        node.run({"a": np.ones(count, np.int64), "b": np.ones(1, np.float32)})
    assert len(made) == 7
    assert [len(stage.nodes) for stage in node.known().stages] == [1, 2]
    node.close()
    assert made[0].is_closed
    with pytest.raises(ExecutionError, match="closed"):
        node.run({"a": np.ones(1, np.int64), "b": np.ones(1, np.float32)})
