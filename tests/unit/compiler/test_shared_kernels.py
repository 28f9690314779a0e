"""A new input shape compiles only the kernels that no other shape has left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.llvm import FuncOp

import byoc_mlir
from byoc_mlir.compiler import pipeline
from byoc_mlir.lowering import shared_kernels
from byoc_mlir.lowering.llvm_ir import parts
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.program import Array, ObjectCode
from byoc_mlir.transforms import fold_batch_norm

IMAGE = (3, 20, 20)

CHANNELS = 6
"""No multiple of any vector: convolutions are loops on every processor."""


def network(batch: int | str) -> onnx.ModelProto:
    """Convolutions and pools. Of a symbolic batch it is compiled for each: so is a mean over what a
    window has within an image, whose height is symbolic then.
    """
    rng = np.random.default_rng(3)

    def weight(name: str, *shape: int) -> TensorProto:
        return numpy_helper.from_array(rng.normal(0, 0.1, shape).astype(np.float32), name)

    halved: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], pads=[1] * 4),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], **halved),
        helper.make_node("Conv", ["c", "w1"], ["d"]),
        helper.make_node("AveragePool", ["d"], ["y"], auto_pad="SAME_UPPER", **halved),
    ]
    height = 20 if isinstance(batch, int) else "H"
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (batch, 3, height, 20))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (batch, CHANNELS, None, 4))],
        [weight("w0", CHANNELS, 3, 3, 3), weight("w1", CHANNELS, CHANNELS, 3, 3)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def batch_of(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    return {"x": rng.normal(size=(size, *IMAGE)).astype(np.float32)}


def run_onnx(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return [np.asarray(output) for output in session.run(None, inputs)]


def check(executable: Executable, size: int) -> None:
    (expected,) = run_onnx(network("N"), batch_of(size))
    np.testing.assert_allclose(executable.run(batch_of(size))["y"], expected, rtol=1e-4, atol=1e-4)


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The functions of every module that LLVM is given."""
    modules: list[list[str]] = []
    emit_modules = pipeline.emit_modules

    def recorded(given: Mapping[str, ModuleOp], **options: object) -> Mapping[str, Sequence[bytes]]:
        for module in given.values():
            functions = [op for op in module.ops if isinstance(op, FuncOp) and op.body.blocks]
            modules.append([op.sym_name.data for op in functions])
        return emit_modules(given, timing=None)

    monkeypatch.setattr(pipeline, "emit_modules", recorded)
    return modules


@pytest.mark.parametrize(
    ("threads", "sizes"),
    [
        pytest.param(1, (16, 32, 48), id="1-thread"),
        pytest.param(2, (240, 300, 360), id="2-threads, work for both"),
    ],
)
def test_another_batch_compiles_no_kernel_again(
    emitted: list[list[str]], threads: int, sizes: tuple[int, ...]
) -> None:
    with byoc_mlir.compile(network("N"), targets=(), threads=threads) as executable:
        check(executable, sizes[0])
        main, kernels = emitted
        assert sum("shared" in name for name in kernels) >= 5
        assert not any("shared" in name for name in main)
        del emitted[:]
        for size in sizes[1:]:
            check(executable, size)
    assert len(emitted) == len(sizes[1:])
    assert not any("shared" in name for names in emitted for name in names)


def test_kernels_are_linked_not_copied() -> None:
    with byoc_mlir.compile(network("N"), targets=(), threads=1) as executable:
        check(executable, 16)
        first = executable.program.code
        check(executable, 32)
        second = executable.program.code
    assert isinstance(first, ObjectCode)
    assert isinstance(second, ObjectCode)
    assert first.kernels[0] is second.kernels[0]
    assert len(second.data) < len(first.kernels[0])


def test_another_batch_folds_no_weight_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = network("N")
    pool = model.graph.node.pop()
    model.graph.node[-1].output[0] = "before"
    statistics = [f"statistics{number}" for number in range(4)]
    node = helper.make_node("BatchNormalization", ["before", *statistics], ["d"])
    model.graph.node.extend([node, pool])
    for seed, name in enumerate(statistics):
        values = np.random.default_rng(seed).uniform(0.5, 1.5, CHANNELS).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    scaled: list[int] = []
    scale = fold_batch_norm.scaled

    def recorded(weight: Array, factors: Array, groups: int | None) -> Array:
        scaled.append(weight.size)
        return scale(weight, factors, groups)

    monkeypatch.setattr(fold_batch_norm, "scaled", recorded)
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        first = executable.run(batch_of(2))["y"]
        second = executable.run(batch_of(3))["y"]
    assert len(scaled) == 1
    (expected,) = run_onnx(model, batch_of(3))
    np.testing.assert_allclose(second, expected, rtol=1e-4, atol=1e-4)
    assert first.shape[0] == 2


def test_another_batch_compiles_no_function_again_that_regions_share(
    emitted: list[list[str]],
) -> None:
    with byoc_mlir.compile(network("N"), targets=("dnnl",), threads=1) as executable:
        check(executable, 2)
        _, functions = emitted
        assert any(name.startswith("byoc_dnnl_make_convolution") for name in functions)
        del emitted[:]
        check(executable, 3)
        check(executable, 4)
    again = [name for names in emitted for name in names if name.startswith("byoc_dnnl")]
    assert not {*again} & {*functions}


def test_objects_that_were_not_used_last_go(
    emitted: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_kernels, "MOST_OBJECTS", 1)
    with byoc_mlir.compile(network("N"), targets=(), threads=1) as executable:
        check(executable, 16)
        check(executable, 1)  # it has loops less, and takes the place
        check(executable, 32)
        check(executable, 48)
    assert ["shared" in "".join(names) for names in emitted] == [False, True] * 3 + [False]


def test_a_small_model_of_fixed_shapes_is_one_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "LEAST_OPS", 1_000_000)
    with byoc_mlir.compile(network(2), targets=(), threads=1) as executable:
        check(executable, 2)
        assert isinstance(executable.program.code, ObjectCode)
        assert executable.program.code.kernels == ()


def test_a_program_with_kernels_of_another_shape_is_exported(tmp_path: Path) -> None:
    with byoc_mlir.compile(network("N"), targets=(), threads=1) as executable:
        check(executable, 16)
        executable.export_library(tmp_path / "model.so", shapes={"x": (32, *IMAGE)})
        assert isinstance(executable.program.code, ObjectCode)
        assert executable.program.code.kernels
    with byoc_mlir.load(tmp_path / "model.so") as loaded:
        check(loaded, 32)
