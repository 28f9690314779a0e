"""Models beside their tensors: nothing is copied, and nothing of theirs reaches other models."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto, StringStringEntryProto, TensorProto, numpy_helper

import byoc_mlir
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.dialects.relay.constant import borrow
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.in_memory import ModelInMemory
from byoc_mlir.runtime.compiled import CompiledExecutable
from byoc_mlir.runtime.packed import counted_copies
from byoc_mlir.runtime.program import ObjectCode

X = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)


def _weights() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((64, 48)).astype(np.float32)


def _model(dims: tuple[int, ...] = (64, 48)) -> ModelProto:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2, 64] x) => (float[2, 48] y) { y = MatMul (x, w) }
    """)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.append(StringStringEntryProto(key="location", value="weights/w"))
    model.graph.initializer.append(tensor)
    return model


def test_it_computes() -> None:
    weights = _weights()
    model = ModelInMemory(_model(), {"weights/w": weights})
    with byoc_mlir.compile(model, ()) as executable:
        np.testing.assert_allclose(executable.run({"x": X})["y"], X @ weights, rtol=1e-4, atol=1e-4)


def test_other_models_do_not_read_its_memory() -> None:
    """Equal weights are one array, unless somebody else may change one of them."""
    borrowed, own = _weights(), _weights()
    borrow(borrowed)
    shared = byoc_mlir.compile(ModelInMemory(_model(), {"weights/w": borrowed}), ())
    model = _model()
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(own, "w"))
    executable = byoc_mlir.compile(model, ())
    borrowed[:] = 0
    np.testing.assert_allclose(executable.run({"x": X})["y"], X @ own, rtol=1e-4, atol=1e-4)
    assert shared.run({"x": X})["y"].shape == (2, 48)


def test_views_of_borrowed_memory_are_borrowed() -> None:
    borrowed, own = _weights(), _weights()
    borrow(borrowed)
    digest = Weight.of("own", own).digest
    assert Weight.of("borrowed", borrowed).digest != digest
    assert Weight.of("borrowed", borrowed).data is borrowed
    part = Weight.of("part", borrowed[:8])
    assert np.shares_memory(part.data, borrowed)
    assert part.digest != Weight.of("own part", own[:8]).digest
    assert Weight.of("own again", _weights()).digest == digest


@pytest.mark.parametrize("dims", [(64, 47), (48, 64)])
def test_arrays_of_another_shape_are_refused(dims: tuple[int, int]) -> None:
    model = ModelInMemory(_model(dims), {"weights/w": _weights()})
    message = r"tensor 'w': in memory there is float32\[64, 48\] at 'weights/w', the model says"
    with pytest.raises(InvalidModelError, match=message):
        byoc_mlir.compile(model, ())


def test_arrays_that_are_not_there_are_refused() -> None:
    model = ModelInMemory(_model(), {"other": _weights()})
    with pytest.raises(InvalidModelError, match="in memory there is nothing at 'weights/w'"):
        byoc_mlir.compile(model, ())


@pytest.mark.parametrize("rows", [1, 4, 40])
@pytest.mark.parametrize("targets", [(), ("dnnl",), ("openblas",)], ids=str)
def test_matrices_of_dense_layers_are_read_where_they_are(
    rows: int, targets: tuple[str, ...]
) -> None:
    weights = np.random.default_rng(1).standard_normal((96, 160)).astype(np.float32)
    borrow(weights)
    x = np.random.default_rng(2).standard_normal((rows, 160)).astype(np.float32)
    proto = _model((96, 160))
    proto.graph.CopyFrom(
        onnx.parser.parse_graph(f"""
            g (float[{rows}, 160] x) => (float[{rows}, 96] y) {{ y = Gemm <transB = 1> (x, w) }}
        """)
    )
    proto.graph.initializer.extend(_model((96, 160)).graph.initializer)
    with counted_copies() as copied:
        model = ModelInMemory(proto, {"weights/w": weights})
        executable = byoc_mlir.compile(model, targets, fallback="allow", prune="off")
        result = executable.run({"x": x})["y"]
        assert copied() == 0
    want = x.astype(np.float64) @ weights.T.astype(np.float64)
    np.testing.assert_allclose(result, want, rtol=0, atol=1e-5 * np.abs(want).max())
    assert isinstance(executable, CompiledExecutable)
    code = executable.program.code
    assert isinstance(code, ObjectCode)
    (held,) = code.weights.values()
    assert np.shares_memory(held, weights)
