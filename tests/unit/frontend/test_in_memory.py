"""Models with tensors in memory: tensors are not copied, and do not reach other models."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import onnx
import pytest
from onnx import ModelProto, StringStringEntryProto, TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.compiler.source import read_source
from byoc_mlir.dialects.relay import ConstantOp, Weight
from byoc_mlir.dialects.relay.constant import borrow
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend.files.in_memory import ModelInMemory, with_tensors_apart
from byoc_mlir.frontend.files.tensors import TensorReader
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
    """Checks that equal weights are one array, unless a caller may change one of them."""
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


@pytest.mark.values
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
    code = executable.program.code
    assert isinstance(code, ObjectCode)
    (held,) = code.weights.values()
    assert np.shares_memory(held, weights)


def _tensors() -> list[TensorProto]:
    """Returns large tensors of several types and forms, and others."""
    rng = np.random.default_rng(0)
    packed = helper.make_tensor("i4", TensorProto.INT4, [128, 65], rng.integers(-8, 8, 128 * 65))
    fields = helper.make_tensor("fields", TensorProto.FLOAT, [64, 48], _weights().reshape(-1))
    texts = numpy_helper.from_array(np.array(["text"] * 5000, object), "texts")
    return [
        numpy_helper.from_array(_weights(), "w"),
        numpy_helper.from_array(rng.integers(0, 9, 5000), "i64"),
        *(packed, fields, texts, _model().graph.initializer[0]),
        numpy_helper.from_array(np.array([4, 5]), "shape"),
    ]


def test_large_tensors_are_apart_from_their_model() -> None:
    model = _model()
    del model.graph.initializer[:]
    model.graph.initializer.extend(_tensors())
    model.metadata_props.append(StringStringEntryProto(key="author", value="nobody"))
    before = model.SerializeToString(deterministic=True)
    apart = with_tensors_apart(model)
    assert model.SerializeToString(deterministic=True) == before
    initializers = apart.proto.graph.initializer
    assert [tensor.name for tensor in initializers] == [one.name for one in _tensors()]
    assert sorted(array.size for array in apart.arrays.values()) == [64 * 48, 5000, 128 * 65]
    reader = TensorReader(None, {**apart.arrays, "weights/w": _weights()})
    for found, tensor in zip(initializers, _tensors(), strict=True):
        if tensor.data_location != TensorProto.EXTERNAL:
            assert found.HasField("raw_data") <= (tensor.name == "shape")
            np.testing.assert_array_equal(reader.array(found), numpy_helper.to_array(tensor))
    reader.inline(apart.proto.graph)
    assert initializers[0] == _tensors()[0]
    assert apart.proto.metadata_props == model.metadata_props
    assert apart.proto.opset_import == model.opset_import


def test_equal_models_with_other_weights_are_other_models() -> None:
    model, other = _model(), _model()
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(_weights(), "w"))
    other.graph.initializer[0].CopyFrom(numpy_helper.from_array(_weights() + 1, "w"))
    assert with_tensors_apart(model).proto != with_tensors_apart(other).proto


def test_who_bound_a_model_of_fixed_shapes_holds_its_weights_alone() -> None:
    model = _model()
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(_weights(), "w"))
    source = read_source(model.SerializeToString())
    assert isinstance(source.model, ModelProto)
    assert source.model.ByteSize() < _weights().nbytes / 10
    imported = source.bind({}, {})
    (held,) = (weakref.ref(op.array) for op in imported.module.walk() if isinstance(op, ConstantOp))
    assert held() is not None
    del imported
    gc.collect()
    assert held() is None
