"""oneDNN behind a JSON graph."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dnnl_json.runtime import DnnlJsonModule
from onnx import ModelProto
from seed_graphs import (
    add_sub_mul,
    check_in_new_process,
    compile_and_check,
    conv_add_relu,
    conv_bias_relu_pool_dense,
    relu_of_sums,
)

from byoc_mlir.backends.json_module import GraphEngine
from byoc_mlir.errors import ExecutionError
from byoc_mlir.testing.reference import random_inputs


@pytest.mark.parametrize("model", [add_sub_mul(), conv_add_relu()], ids=["arithmetic", "conv"])
def test_whole_graphs_are_one_region(model: ModelProto, tmp_path: Path) -> None:
    with compile_and_check(model, "dnnl_json", fallback="forbid") as executable:
        assert {row.implementation for row in executable.report().placed("dnnl_json")} == {"oneDNN"}
        check_in_new_process(executable, model, tmp_path)


def test_several_results_and_a_constant() -> None:
    with compile_and_check(relu_of_sums(), "dnnl_json") as executable:
        assert executable.report().counts()["dnnl_json"] == 3


def test_the_graph_has_the_convolutions_attributes() -> None:
    with compile_and_check(conv_bias_relu_pool_dense(), "dnnl_json") as executable:
        placed = executable.report().placed("dnnl_json")
        assert {row.composite for row in placed} == {
            "dnnl_json.conv2d_bias_relu",
            "dnnl_json.conv2d_relu",
            "dnnl_json.dense_bias_relu",
        }
        graph = json.loads(executable.get_source("dnnl_json_main_0"))
    (kernel,) = _kernels(graph)
    assert kernel["name"] == "dnnl_json.conv2d_bias_relu"
    attributes = kernel["attrs"]
    assert attributes["strides"] == [2, 2]
    assert attributes["padding"] == [1, 2, 1, 2]
    assert (attributes["dilation"], attributes["groups"]) == ([1, 1], 1)
    assert attributes["shape"] == [2, 8, 8, 8]
    names = [graph["nodes"][node]["op"] for node, _ in kernel["inputs"]]
    assert names == ["input", "const", "const"]


def _kernels(graph: dict[str, Any]) -> list[dict[str, Any]]:
    return [node for node in graph["nodes"] if node["op"] == "kernel"]


def test_the_engine_is_built_once_and_serves_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    model = conv_add_relu()
    built: list[GraphEngine] = []
    build = DnnlJsonModule.build_engine

    def record(self: DnnlJsonModule) -> GraphEngine:
        built.append(build(self))
        return built[-1]

    monkeypatch.setattr(DnnlJsonModule, "build_engine", record)
    inputs = [random_inputs(model, seed=seed) for seed in range(4)]
    with compile_and_check(model, "dnnl_json") as executable:
        expected = [executable.run(one)["out"] for one in inputs]
        with ThreadPoolExecutor(4) as pool:
            found = list(
                pool.map(lambda index: executable.run(inputs[index % 4])["out"], range(32))
            )
    assert len(built) == 1
    for index, array in enumerate(found):
        np.testing.assert_array_equal(array, expected[index % 4])


def test_foreign_bytes_are_refused_with_words() -> None:
    with pytest.raises(ExecutionError, match="no JSON graph with constants"):
        DnnlJsonModule.load(b"something else")
