"""Quantised matmuls on the host: the IR after `lower-integer-products`, and the results."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.verified import verify_module
from host_runner import Array, Network, run_on_host
from measured import measured
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue

from byoc_mlir.calibration import Calibration, using
from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay import RelayOp, elementwise, nn, qnn, qnn_window
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.lowering.integer_products.lower_integer_products import LowerIntegerProducts
from byoc_mlir.runtime.system.cpu import Cpu

_HAS_VNNI = {"avx512_vnni", "avx512vl"} <= set(Cpu.host().features)
_WORDS = ("pairs", "widened", *(["overlapping"] if "avx2" in Cpu.host().features else []))
PASSES = pytest.mark.parametrize(
    "lowering",
    [
        *(LowerIntegerProducts(8, words=words) for words in _WORDS),
        *([LowerIntegerProducts(8, True)] if _HAS_VNNI else []),
    ],
    ids=lambda it: it.words or "bytes",
)
BYTES = (np.uint8, np.int8)


def _bytes(dtype: Any, *shape: int) -> Array:
    """Returns random 8-bit values, with both ends of the range among them."""
    info = np.iinfo(dtype)
    array = np.random.default_rng(sum(shape)).integers(info.min, info.max + 1, shape, dtype)
    array.reshape(-1)[:2] = info.min, info.max
    return array


def _check(module: ModuleOp, inputs: list[Array], lowering: LowerIntegerProducts) -> None:
    """Compares with the evaluator, and checks that all ops are in kernels."""
    (function,) = module.ops
    assert isinstance(function, func.FuncOp)
    wanted = evaluate(function, inputs)
    lowering.apply(Context(), module)
    verify_module(module)
    assert not [op for op in module.walk() if op.name.startswith("relay.qnn")]
    kernels = [op for op in module.walk() if isinstance(op, host.KernelOp)]
    assert len(kernels) == 1
    for found, want in zip(run_on_host(module, inputs), wanted, strict=True):
        np.testing.assert_array_equal(found, want)


@pytest.mark.values
@PASSES
@pytest.mark.parametrize(
    ("data_type", "weight_type", "known"),
    [
        (np.uint8, np.int8, True),
        (np.int8, np.int8, False),
        (np.int8, np.uint8, True),
        (np.uint8, np.uint8, False),
    ],
)
def test_dense(
    lowering: LowerIntegerProducts, data_type: Any, weight_type: Any, known: bool
) -> None:
    """Checks all combinations of types, constant or computed zero points and biases, and partial
    groups.
    """
    data, weight = _bytes(data_type, 2, 5, 37), _bytes(weight_type, 21, 37)
    zero, bias = np.array(77, data_type), np.arange(-10, 11, dtype=np.int32) * 999
    weight_zero = _bytes(weight_type, 21)
    network = Network(data, *(() if known else (zero, bias)))
    given = [network.constant(one) for one in (zero, bias)] if known else network.args[1:]
    constants = [network.constant(one) for one in (weight, weight_zero)]
    sums = network.add(qnn.DenseOp(network.args[0], constants[0], given[0], constants[1]))
    module = network.returning(network.add(nn.BiasAddOp(sums, given[1], axis=-1)))
    _check(module, list(network.inputs), lowering)


@pytest.mark.parametrize(
    ("rows", "weight_bytes", "words"), [(2, 1e6, "widened"), (2, 1e9, "pairs"), (200, 1e6, "pairs")]
)
def test_few_rows_read_bytes_where_memory_is_slow(
    rows: int, weight_bytes: float, words: str
) -> None:
    """Checks that bytes are widened if reading twice as many weights takes longer."""
    calibration = {
        "integers": {"products": 1e7, "bytes": 1e7, "depthwise": 1e7},
        "convolutions": {"products": 1e7, "transformed_bytes": 1e7, "weight_bytes": weight_bytes},
    }
    zero = np.zeros((), np.int8)
    network = Network(_bytes(np.int8, rows, 64))
    constants = (network.constant(one) for one in (_bytes(np.int8, 32, 64), zero, zero))
    module = network.returning(network.add(qnn.DenseOp(network.args[0], *constants)))
    with using(Calibration(measured(**calibration), is_fixed=True)):
        LowerIntegerProducts(8).apply(Context(), module)
    assert f"_matrix_{words}_" in str(module)


def _convolution(
    network: Network, kind: type[RelayOp], weight: Array, zero: Any, **window: Any
) -> SSAValue:
    operands = [network.constant(one) for one in (weight, np.array(zero), np.zeros((), np.int8))]
    weights, data_zero, weight_zero = operands
    return network.add(kind(network.args[0], weights, data_zero, weight_zero, **window))


def _requantized(network: Network, sums: SSAValue, scales: Array, zero: Any) -> SSAValue:
    numbers = (scales, np.zeros((), np.int32), np.array(0.37, np.float32), np.array(zero))
    return network.add(
        qnn.RequantizeOp(sums, *(network.constant(number) for number in numbers), axis=1)
    )


def _scales(count: int) -> Array:
    return np.random.default_rng(count).uniform(1e-5, 2e-3, count).astype(np.float32)


@pytest.mark.values
@PASSES
@pytest.mark.parametrize(("data_type", "result_type"), [BYTES, BYTES[::-1]])
def test_convolution_to_bytes(
    lowering: LowerIntegerProducts, data_type: Any, result_type: Any
) -> None:
    data, weight = _bytes(data_type, 2, 3, 13, 9), _bytes(np.int8, 19, 3, 3, 2)
    network = Network(data)
    window = {"strides": [2, 1], "padding": [1, 0, 2, 1], "dilation": [1, 2]}
    sums = _convolution(network, qnn_window.Conv2DOp, weight, data_type(99), **window)
    bias = network.constant(np.arange(19, dtype=np.int32) * 1000)
    biased = network.add(nn.BiasAddOp(sums, bias, axis=1))
    result = _requantized(network, biased, _scales(19), result_type(12))
    module = network.returning(network.add(elementwise.ClipOp(result, a_min=12.0, a_max=90.5)))
    _check(module, [data], lowering)


@PASSES
def test_convolution_of_lines(lowering: LowerIntegerProducts) -> None:
    data, weight = _bytes(np.uint8, 2, 8, 30), _bytes(np.int8, 33, 8, 5)
    network = Network(data)
    window = {"strides": [1], "padding": [2, 2], "dilation": [1]}
    sums = _convolution(network, qnn_window.Conv1DOp, weight, np.uint8(128), **window)
    _check(
        network.returning(_requantized(network, sums, _scales(33), np.int8(-1))), [data], lowering
    )


@pytest.mark.values
@PASSES
@pytest.mark.parametrize("shape", [(), (20,), (1, 1, 20)], ids=str)
def test_product_to_numbers(lowering: LowerIntegerProducts, shape: tuple[int, ...]) -> None:
    """Checks a matmul as after dynamic quantisation: scale and zero point are computed at run
    time."""
    data, weight = _bytes(np.uint8, 3, 4, 16), _bytes(np.int8, 16, 20)
    scale = np.random.default_rng(5).uniform(0.1, 1, shape).astype(np.float32)
    zero, bias = np.array(131, np.uint8), _scales(20)
    network = Network(data, scale, zero)
    x, factor, shift = network.args
    zeros = [network.constant(np.zeros((), dtype)) for dtype in (np.int8, np.int32)]
    sums = network.add(qnn.MatmulOp(x, network.constant(weight), shift, zeros[0]))
    if len(shape) < 2:
        numbers = network.add(qnn.DequantizeOp(sums, factor, zeros[1], axis=-1))
    else:
        cast = network.add(elementwise.CastOp(sums, dtype=f32))
        numbers = network.add(elementwise.MultiplyOp(factor, cast))
    module = network.returning(network.add(elementwise.AddOp(numbers, network.constant(bias))))
    _check(module, [data, scale, zero], lowering)


@pytest.mark.values
@PASSES
@pytest.mark.parametrize(("dtype", "zero", "copies"), [(np.int8, 0, 0), (np.uint8, 128, 1)])
def test_weights_are_not_widened(
    lowering: LowerIntegerProducts, dtype: Any, zero: int, copies: int
) -> None:
    """Checks the memory of packing: it holds the packed weights, and bytes less their zero point,
    but no wider copies.
    """
    weights = np.random.default_rng(0).normal(zero, 20, (1024, 4096)).clip(zero - 99, zero + 99)
    network = Network(np.zeros((1, 4096), np.uint8))
    arrays: tuple[Array, ...] = (
        weights.astype(dtype),
        np.array(9, np.uint8),
        np.array(zero, dtype),
    )
    given = [network.constant(one) for one in arrays]
    sums = network.add(qnn.DenseOp(network.args[0], *given))
    module = network.returning(sums)
    tracemalloc.start()
    lowering.apply(Context(), module)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    kept = 2 if lowering.words == "pairs" else 1
    assert peak < (kept + copies + 0.7) * weights.size


def _of_two_tensors(network: Network) -> SSAValue:
    zeros = [network.constant(np.zeros((), np.uint8)) for _ in range(2)]
    return network.add(qnn.MatmulOp(*network.args, *zeros))


def _of_groups(network: Network) -> SSAValue:
    weight = network.constant(_bytes(np.uint8, 4, 2, 1, 1))
    zeros = [network.constant(np.zeros((), np.uint8)) for _ in range(2)]
    data = network.args[0]
    window: dict[str, Any] = {"strides": [1, 1], "padding": [0] * 4, "dilation": [1, 1]}
    return network.add(qnn_window.Conv2DOp(data, weight, *zeros, groups=2, **window))


@pytest.mark.parametrize(
    ("made", "inputs"),
    [
        (_of_two_tensors, [_bytes(np.uint8, 3, 4), _bytes(np.uint8, 4, 5)]),
        (_of_groups, [_bytes(np.uint8, 1, 4, 2, 2)]),
    ],
)
def test_others_stay(made: Callable[[Network], SSAValue], inputs: list[Array]) -> None:
    network = Network(*inputs)
    module = network.returning(made(network))
    before = str(module)
    LowerIntegerProducts(8).apply(Context(), module)
    assert str(module) == before
