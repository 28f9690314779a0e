"""Whole models for the GPU: run, stored and refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.cuda.emulation import Record
from onnx import ModelProto, TensorProto, helper

import byoc_mlir
from byoc_mlir.errors import ByocError
from byoc_mlir.nvidia.driver import ENVIRONMENT_VARIABLE
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

_SMALL = {"mnist": {}, "squeezenet": {"image": 32}, "vit_tiny": {"image": 32, "layers": 1}}


@pytest.mark.parametrize("name", _SMALL)
def test_a_network_runs_on_the_gpu(gpu: Record, name: str) -> None:
    model = NETWORKS[name](**_SMALL[name])
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=("cuda",), cache=False) as executable:
        found = executable.run(inputs)
        again = executable.run(inputs)

    assert_agrees(found, run_onnxruntime(model, inputs))
    assert_agrees(again, found, 0)
    assert {row.placement for row in executable.report().rows} <= {"cuda", "removed", "folded"}


def _chain() -> ModelProto:
    """Returns a model with a power that only the host computes, between ops for the GPU."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [40, 50]) for name in "xyz"]
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "relu"),
        helper.make_node("Pow", ["a", "y"], ["b"], "pow"),
        helper.make_node("Softmax", ["b"], ["z"], "softmax"),
    ]
    graph = helper.make_graph(nodes, "chain", value[:2], value[2:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_the_host_computes_what_the_gpu_does_not(gpu: Record) -> None:
    model = _chain()
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=("cuda",), cache=False) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))

    placements = {row.node: row.placement for row in executable.report().rows}
    assert placements == {"relu": "cuda", "pow": "host", "softmax": "cuda"}


def test_the_cache_keeps_what_the_driver_linked(gpu: Record, tmp_path: Path) -> None:
    model = NETWORKS["mlp3"]()
    inputs = random_inputs(model)

    for calls in (1, 0):
        gpu.forget()
        with byoc_mlir.compile(model, targets=("cuda",), cache=tmp_path) as executable:
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert gpu.calls().count("cuLinkComplete") == calls


def test_a_model_is_compiled_where_no_gpu_is(
    gpu: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, file = NETWORKS["mlp3"](), tmp_path / "model.so"
    inputs = random_inputs(model)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv(ENVIRONMENT_VARIABLE, "/nowhere/libcuda.so.1")
        executable = byoc_mlir.compile(model, targets=("cuda",), load=False, cache=False)
        executable.export_library(file)
        with pytest.raises(ByocError, match=r"/nowhere/libcuda\.so\.1"):
            executable.run(inputs)

    with byoc_mlir.load(file) as loaded:
        assert_agrees(loaded.run(inputs), run_onnxruntime(model, inputs))
    assert "cuLinkComplete" not in gpu.calls()


def test_a_fault_names_the_device(gpu: Record) -> None:
    model = NETWORKS["mlp3"]()
    inputs = random_inputs(model)

    with byoc_mlir.compile(model, targets=("cuda",), cache=False) as executable:
        gpu.fail("cuLaunchKernel", 2)
        with pytest.raises(ByocError, match=r"device 'cuda'.*out of memory"):
            executable.run(inputs)
        gpu.forget()
        np.testing.assert_allclose(
            [*executable.run(inputs).values()],
            [*run_onnxruntime(model, inputs).values()],
            rtol=1e-4,
            atol=1e-6,
        )
