"""ONNX Runtime as a backend: for the regions that are preferred there, or left by others."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest
from seed_graphs import (
    add_sub_mul,
    check_in_new_process,
    compile_and_check,
    conv_add_relu,
    conv_bias_relu_pool_dense,
    relu_of_sums,
)

import byoc_mlir
from byoc_mlir.backends.onnxruntime import backend as onnxruntime_backend
from byoc_mlir.backends.onnxruntime.runtime import OnnxRuntimeModule
from byoc_mlir.errors import BackendError, ExecutionError
from byoc_mlir.testing.networks import GraphBuilder


@pytest.mark.parametrize(
    "model",
    [add_sub_mul(), conv_add_relu(), conv_bias_relu_pool_dense()],
    ids=["arithmetic", "conv", "network"],
)
def test_whole_graphs_are_one_region(model: onnx.ModelProto) -> None:
    with compile_and_check(model, "onnxruntime", fallback="forbid") as executable:
        assert {row.implementation for row in executable.report()} <= {"ONNX Runtime", ""}
        assert {row.region for row in executable.report()} <= {"onnxruntime_main_0", ""}


def test_regions_are_onnx_models(tmp_path: Path) -> None:
    model = relu_of_sums()
    with compile_and_check(model, "onnxruntime", tolerance=0) as executable:
        source = executable.get_source("onnxruntime_main_0")
        assert {node.op_type for node in onnx.parser.parse_model(source).graph.node} == {
            "Add", "Relu", "Mul", "Identity",
        }  # fmt: skip
        check_in_new_process(executable, model, tmp_path)


def _attention() -> onnx.ModelProto:
    b = GraphBuilder("attention", seed=8)
    x = b.input("x", [2, 5, 8])
    scores = b.op("MatMul", x, b.op("Transpose", x, perm=[0, 2, 1]))
    y = b.op("MatMul", b.op("Softmax", scores, axis=-1), x)
    y = b.op("LayerNormalization", b.op("Erf", y), b.normal((8,), 1.0), b.normal((8,), 1.0))
    y = b.op("ReduceMean", b.op("Clip", y, b.scalar(-0.5), b.scalar(0.9)), axes=[1], keepdims=0)
    b.output(b.op("Concat", y, y, axis=1), "out", [2, 16])
    return b.build()


def test_ops_with_attributes_are_written_as_they_are() -> None:
    with compile_and_check(_attention(), "onnxruntime", fallback="forbid") as executable:
        assert executable.report().counts().keys() <= {"onnxruntime", "removed"}


def test_it_gets_what_the_first_target_leaves() -> None:
    model = conv_bias_relu_pool_dense()
    with compile_and_check(model, "dnnl_json", "onnxruntime") as executable:
        placed = executable.report().placed
        assert [row.op_type for row in placed("dnnl_json")].count("Conv") == 2
        assert {"MaxPool", "GlobalAveragePool", "Softmax"} <= {
            row.op_type for row in placed("onnxruntime")
        }


@pytest.mark.parametrize("target", ["onnxruntime{optimise=off}", "onnxruntime{optimise=true}"])
def test_the_option_reaches_the_runtime(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []
    create = OnnxRuntimeModule.__init__

    def record(self: OnnxRuntimeModule, model: bytes, threads: int, optimise: bool) -> None:
        made.append(optimise)
        create(self, model, threads, optimise)

    monkeypatch.setattr(OnnxRuntimeModule, "__init__", record)
    byoc_mlir.compile(add_sub_mul(), (target,)).close()
    assert set(made) == {target.endswith("true}")}


def test_without_onnx_runtime_compiling_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(onnxruntime_backend, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"'onnxruntime' is not usable.*pip install onnxruntime"):
        byoc_mlir.compile(add_sub_mul(), ("onnxruntime",))


def test_without_onnx_runtime_loading_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ExecutionError, match=r"R runs in ONNX Runtime.*`pip install onnxruntime`"):
        OnnxRuntimeModule(b"", 1, True).get_function("R")


def test_foreign_bytes_are_refused_with_words() -> None:
    with pytest.raises(ExecutionError, match="ONNX Runtime"):
        OnnxRuntimeModule.load(b"")
