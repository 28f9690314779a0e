"""Float ops between `DequantizeLinear` and `QuantizeLinear`: their integer forms, against ONNX
Runtime.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from helpers.models import model_of
from numpy.typing import NDArray
from onnx import ModelProto, helper
from onnx.parser import parse_model
from quantised_checks import assert_within_steps, bytes_of, run_passes

from byoc_mlir.dialects import make_context
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import run_onnxruntime
from byoc_mlir.transforms.fake_quantization_to_integer import FakeQuantizationToInteger
from byoc_mlir.transforms.kept_float import KEPT_FLOAT

Arrays = Mapping[str, NDArray[Any]]
U8, I8 = np.uint8, np.int8
IMAGE, PLANE = (2, 4, 7, 6), (3, 8)


def qdq_model(
    op_type: str,
    operands: Sequence[tuple[NDArray[Any], float, Any, int | None]],
    output: tuple[float, Any],
    *more: NDArray[Any],
    relu: bool = False,
    opset: int = 17,
    **attributes: Any,
) -> tuple[ModelProto, dict[str, NDArray[Any]]]:
    """Returns a model that dequantises, computes and quantises, and its inputs.

    Args:
        operands: integers, scale, zero point, and the axis of a constant that has scales along it;
            the first operand is the input, the others are constants.
        output: scale and zero point.
        more: operands that are not quantised.
    """
    nodes, constants, names = [], {}, []
    for place, (integers, scale, zero, axis) in enumerate(operands):
        constants |= {f"x{place}": integers} if place else {}
        count = 1 if axis is None else integers.shape[axis]
        spread = np.linspace(1, 2, count).astype(np.float32) * np.float32(scale)
        shift = np.full(count, zero, integers.dtype)
        constants[f"s{place}"] = spread[0] if axis is None else spread
        constants[f"z{place}"] = shift[0] if axis is None else shift
        parts = [f"x{place}", f"s{place}", f"z{place}"]
        along: dict[str, Any] = {} if axis is None else {"axis": axis}
        nodes.append(helper.make_node("DequantizeLinear", parts, [f"f{place}"], **along))
        names.append(f"f{place}")
    for place, array in enumerate(more):
        constants[f"m{place}"] = array
        names.append(f"m{place}")
    nodes.append(helper.make_node(op_type, names, ["o"], "op", **attributes))
    if relu:
        nodes.append(helper.make_node("Relu", ["o"], ["r"]))
    constants |= {"ys": np.float32(output[0]), "yz": np.asarray(output[1])}
    last = "r" if relu else "o"
    nodes.append(helper.make_node("QuantizeLinear", [last, "ys", "yz"], ["y"]))
    data = operands[0][0]
    return model_of(nodes, {"x0": data}, constants, opset=opset), {"x0": data}


def names_of(model: ModelProto) -> list[str]:
    """Returns the ops of the model as integers; none is kept in floats."""
    module = import_model(model).module
    FakeQuantizationToInteger().apply(make_context(), module)
    assert KEPT_FLOAT not in module.attributes, module.attributes
    ignored = ("relay.constant", "builtin.module", "func.func", "func.return")
    return [op.name.removeprefix("relay.") for op in module.walk() if op.name not in ignored]


def check(model: ModelProto, inputs: Arrays, *names: str) -> None:
    """Checks the integer ops, and that all outputs are ONNX Runtime's."""
    assert names_of(model) == list(names)
    expected = run_onnxruntime(model, inputs)["y"]
    for integers in (False, True):
        assert_within_steps(run_passes(model, inputs, integers=integers)[0], expected)


def data(dtype: Any, *shape: int, zero: int = 3) -> tuple[NDArray[Any], float, Any, None]:
    return bytes_of(np.random.default_rng(1), dtype, *shape), 0.02, dtype(zero), None


def weight(
    dtype: Any, *shape: int, axis: int | None = None, zero: int = 0
) -> tuple[NDArray[Any], float, Any, int | None]:
    return bytes_of(np.random.default_rng(2), dtype, *shape), 0.01, dtype(zero), axis


def bias(count: int, axis: int | None) -> tuple[NDArray[Any], float, Any, int | None]:
    """Returns a bias whose scale is the product of the scales of `data` and `weight`."""
    numbers = np.random.default_rng(3).integers(-3000, 3000, count).astype(np.int32)
    return numbers, 0.02 * 0.01, np.int32(0), axis


@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize(("of_data", "of_weight"), [(U8, I8), (I8, I8), (U8, U8)])
def test_convolutions(of_data: Any, of_weight: Any, axis: int | None) -> None:
    zero = 0 if of_weight is I8 else 128
    operands = [
        data(of_data, *IMAGE),
        weight(of_weight, 6, 2, 3, 3, axis=axis, zero=zero),
        bias(6, axis),
    ]
    model, inputs = qdq_model(
        "Conv", operands, (0.3, of_data(40)), relu=True, group=2, pads=[1] * 4, strides=[2, 1]
    )
    check(model, inputs, "qnn.conv2d", "nn.bias_add", "qnn.requantize", "clip")


def biased_by_floats(step: float) -> tuple[ModelProto, dict[str, NDArray[Any]]]:
    numbers = np.random.default_rng(4).standard_normal(6).astype(np.float32)
    operands = [data(U8, *IMAGE), weight(I8, 6, 4, 3, 3, axis=0)]
    return qdq_model("Conv", operands, (step, U8(40)), numbers, relu=True)


def test_a_bias_of_floats_is_rounded_where_steps_are_large() -> None:
    model, inputs = biased_by_floats(0.3)
    check(model, inputs, "qnn.conv2d", "nn.bias_add", "qnn.requantize", "clip")


def test_a_bias_of_floats_stays_where_steps_are_small() -> None:
    model, inputs = biased_by_floats(0.001)
    module = import_model(model).module
    FakeQuantizationToInteger().apply(make_context(), module)
    reason = "nn.bias_add of these operands has no integer form"
    assert reason in str(module.attributes[KEPT_FLOAT])
    expected = run_onnxruntime(model, inputs)["y"]
    assert_within_steps(run_passes(model, inputs, integers=True)[0], expected)


@pytest.mark.parametrize("rank", [1, 3])
def test_convolutions_of_other_ranks(rank: int) -> None:
    sizes = (5, 4, 3)[:rank]
    operands = [data(U8, 1, 3, *sizes), weight(I8, 4, 3, *[2] * rank, axis=0)]
    model, inputs = qdq_model("Conv", operands, (0.2, U8(128)))
    check(model, inputs, f"qnn.conv{rank}d", "qnn.requantize")


@pytest.mark.parametrize(("groups", "axis"), [(1, None), (1, 1), (2, None)])
def test_transposed_convolutions(groups: int, axis: int | None) -> None:
    operands = [data(U8, 1, 4, 5, 4), weight(I8, 4, 6 // groups, 3, 3, axis=axis), bias(6, None)]
    operands = operands[:2] if axis else operands
    model, inputs = qdq_model(
        "ConvTranspose", operands, (0.2, U8(128)), group=groups, strides=[2, 2], pads=[1, 0, 0, 1]
    )
    added = () if axis else ("nn.bias_add",)
    check(model, inputs, "qnn.conv2d_transpose", *added, "qnn.requantize")


@pytest.mark.parametrize("axis", [None, 1])
def test_products(axis: int | None) -> None:
    operands = [data(U8, 2, 3, 20), weight(I8, 20, 5, axis=axis, zero=2)]
    model, inputs = qdq_model("MatMul", operands, (0.1, U8(128)))
    check(model, inputs, "qnn.dense", "qnn.requantize")


@pytest.mark.parametrize("turned", [0, 1])
def test_gemm(turned: int) -> None:
    shape = (5, 20) if turned else (20, 5)
    operands = [data(I8, 3, 20), weight(I8, *shape, axis=1 - turned), bias(5, 0)]
    model, inputs = qdq_model("Gemm", operands, (0.1, I8(-20)), relu=True, transB=turned)
    check(model, inputs, "qnn.dense", "nn.bias_add", "qnn.requantize", "clip")


def test_product_of_stacks() -> None:
    operands = [data(U8, 2, 3, 4, 8), weight(U8, 2, 3, 8, 5, zero=100)]
    model, inputs = qdq_model("MatMul", operands, (0.1, U8(128)))
    check(model, inputs, "qnn.matmul", "qnn.requantize")


@pytest.mark.parametrize(("op_type", "name"), [("Add", "qnn.add"), ("Mul", "qnn.multiply")])
@pytest.mark.parametrize("relu", [False, True])
def test_binary(op_type: str, name: str, relu: bool) -> None:
    operands = [data(U8, 2, 3, 8), weight(I8, 3, 1, zero=-7)]
    model, inputs = qdq_model(op_type, operands, (0.03, U8(50)), relu=relu)
    check(model, inputs, name, *["clip"][: int(relu)])


@pytest.mark.parametrize(
    ("op_type", "attributes", "name"),
    [
        ("AveragePool", {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}, "qnn.avg_pool2d"),
        (
            "AveragePool",
            {"kernel_shape": [2, 2], "pads": [1] * 4, "count_include_pad": 1},
            "qnn.avg_pool2d",
        ),
        ("GlobalAveragePool", {}, "qnn.global_avg_pool2d"),
        ("ReduceMean", {"axes": [2, 3], "keepdims": 1}, "qnn.global_avg_pool2d"),
    ],
)
def test_average_pools(op_type: str, attributes: dict[str, Any], name: str) -> None:
    model, inputs = qdq_model(op_type, [data(U8, *IMAGE)], (0.007, U8(90)), **attributes)
    check(model, inputs, name)


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize(
    ("op_type", "shape", "more", "attributes", "name"),
    [
        ("MaxPool", IMAGE, (), {"kernel_shape": [2, 2], "pads": [1] * 4}, "nn.max_pool2d"),
        ("GlobalMaxPool", IMAGE, (), {}, "nn.global_max_pool2d"),
        ("Reshape", PLANE, (np.array([4, 6]),), {}, "reshape"),
        ("Transpose", IMAGE, (), {"perm": [0, 2, 3, 1]}, "transpose"),
        ("Flatten", IMAGE, (), {"axis": 2}, "reshape"),
        ("Unsqueeze", PLANE, (np.array([1]),), {}, "expand_dims"),
        ("Squeeze", (1, 5), (np.array([0]),), {}, "squeeze"),
        ("Slice", PLANE, (np.array([1]), np.array([7]), np.array([1])), {}, "strided_slice"),
        ("Pad", PLANE, (np.array([1, 0, 0, 2]),), {}, "nn.pad"),
        ("Gather", PLANE, (np.array([2, 0]),), {"axis": 0}, "take"),
        ("Expand", (3, 1), (np.array([3, 4]),), {}, "broadcast_to"),
        ("DepthToSpace", IMAGE, (), {"blocksize": 2}, None),
        (
            "Resize",
            IMAGE,
            (np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)),
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"},
            "image.resize",
        ),
    ],
)
def test_moves(
    op_type: str,
    shape: tuple[int, ...],
    more: Sequence[NDArray[Any]],
    attributes: dict[str, Any],
    name: str | None,
    same: bool,
) -> None:
    """Checks that equal parameters need no arithmetic; else the result is requantised."""
    output = (0.02, U8(3)) if same else (0.05, U8(30))
    model, inputs = qdq_model(op_type, [data(U8, *shape)], output, *more, **attributes)
    last = () if same else ("qnn.requantize",)
    if name is not None:
        check(model, inputs, name, *last)
        return
    expected = run_onnxruntime(model, inputs)["y"]
    assert_within_steps(run_passes(model, inputs, integers=True)[0], expected)
    assert not any(each.startswith("qnn.") for each in names_of(model) if each not in last)


@pytest.mark.parametrize("dtype", [U8, I8])
@pytest.mark.parametrize(
    ("op_type", "more", "attributes"),
    [
        ("Sigmoid", (), {}),
        ("Tanh", (), {}),
        ("LeakyRelu", (), {"alpha": 0.2}),
        ("HardSigmoid", (), {}),
        ("Elu", (), {}),
        ("Erf", (), {}),
        ("Sqrt", (), {}),
        ("PRelu", (np.array([0.3], np.float32),), {}),
    ],
)
def test_functions_of_a_byte(
    op_type: str, more: Sequence[NDArray[Any]], attributes: dict[str, Any], dtype: Any
) -> None:
    every = np.arange(256, dtype=np.uint8).view(dtype)
    zero = 0 if op_type == "Sqrt" else 20
    operand = (np.maximum(every, 0) if op_type == "Sqrt" else every, 0.05, dtype(zero), None)
    model, inputs = qdq_model(op_type, [operand], (0.02, dtype(10)), *more, **attributes)
    check(model, inputs, "qnn.lookup")


def test_a_function_of_one_byte_with_another_rank_is_no_table() -> None:
    """Checks a constant of rank 2, which makes `[1, 3]` of `[3]`; a table could not."""
    model = parse_model(
        """<ir_version: 8, opset_import: ["" : 13]>
        g (uint8[3] x) => (uint8[1, 3] y)
        <float s = {0.1}, uint8 z = {10}, float[1, 1] c = {2.0}>
        {
            a = DequantizeLinear(x, s, z)
            b = Mul(a, c)
            d = Sigmoid(b)
            y = QuantizeLinear(d, s, z)
        }"""
    )
    inputs = {"x": np.array([0, 10, 255], U8)}
    expected = run_onnxruntime(model, inputs)["y"]
    assert_within_steps(run_passes(model, inputs, integers=True)[0], expected)


@pytest.mark.parametrize("dtype", [U8, I8])
def test_a_product_of_a_byte_and_its_function(dtype: Any) -> None:
    """Checks that a quantised SiLU is one table, which includes the quantisation between its
    ops."""
    type_ = np.dtype(dtype).name
    model = parse_model(
        f"""<ir_version: 8, opset_import: ["" : 13]>
        g ({type_}[256] x) => ({type_}[256] y)
        <float s = {{0.05}}, float t = {{0.004}}, float u = {{0.02}}, {type_} z = {{20}}>
        {{
            a = DequantizeLinear(x, s, z)
            b = Sigmoid(a)
            c = QuantizeLinear(b, t, z)
            d = DequantizeLinear(c, t, z)
            e = Mul(a, d)
            y = QuantizeLinear(e, u, z)
        }}"""
    )
    check(model, {"x": np.arange(256, dtype=U8).view(dtype)}, "qnn.lookup")


@pytest.mark.parametrize(
    ("low", "high", "names"),
    [(0.0, 6.0, ["clip"]), (-1.0, 1.0, ["clip"]), (-100.0, 100.0, [])],
)
def test_clip(low: float, high: float, names: list[str]) -> None:
    bounds = (np.float32(low), np.float32(high))
    model, inputs = qdq_model(
        "Clip", [data(U8, 3, 50, zero=128)], (0.02, U8(128)), *map(np.asarray, bounds)
    )
    check(model, inputs, *names)


def test_concatenation() -> None:
    operands = [data(U8, 2, 3), weight(U8, 2, 4)]
    model, inputs = qdq_model("Concat", operands, (0.02, U8(3)), axis=1)
    assert names_of(model) == ["concatenate"]  # the second part is known
    expected = run_onnxruntime(model, inputs)["y"]
    assert_within_steps(run_passes(model, inputs, integers=True)[0], expected)
