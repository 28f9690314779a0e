"""Convolutions of the host by kernels, and the ops after them in NHWC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from helpers.verified import verify_module
from host_runner import Array, Network, assert_close, run_on_host
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import OpResult, SSAValue
from xdsl.utils.exceptions import PassFailedException

from byoc_mlir.dialects import host
from byoc_mlir.dialects.relay import elementwise, nn, pool, transform, window
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.lowering.convolutions.choose_convolution_algorithms import (
    ChooseConvolutionAlgorithms,
)
from byoc_mlir.lowering.convolutions.decompose_transposed_convolutions import (
    DecomposeTransposedConvolutions,
)
from byoc_mlir.lowering.convolutions.lower_convolutions import LowerConvolutions

_RANDOM = np.random.default_rng(0)


def _array(*shape: int) -> Array:
    return _RANDOM.uniform(-1, 1, shape).astype(np.float32)


def _convolved(network: Network, data: SSAValue, weight: Array, **attributes: Any) -> SSAValue:
    rank = weight.ndim - 2
    kind = window.Conv1DOp if rank == 1 else window.Conv2DOp
    defaults = {"strides": [1] * rank, "padding": [1] * 2 * rank, "dilation": [1] * rank}
    return network.add(kind(data, network.constant(weight), **{**defaults, **attributes}))


def _pooled(network: Network, data: SSAValue, kind: Any, **attributes: Any) -> SSAValue:
    defaults = {"strides": [2, 2], "padding": [1, 1, 0, 0], "dilation": [1, 1]}
    return network.add(kind(data, pool_size=[3, 3], **{**defaults, **attributes}))


def _check(
    network: Network, *outputs: SSAValue, algorithm: str, kernels: int, threads: int = 0
) -> None:
    """Compares with the evaluator, and checks the number of kernel calls."""
    module = network.returning(*outputs)
    wanted = evaluate(network.function, network.inputs)
    ChooseConvolutionAlgorithms(max(threads, 1), algorithm).apply(Context(), module)
    LowerConvolutions(threads).apply(Context(), module)
    verify_module(module)
    assert _kernels(module) == kernels
    found = run_on_host(module, network.inputs, threads=threads > 0)
    for got, want in zip(found, wanted, strict=True):
        assert_close(got, want, 2e-5, algorithm)


def _kernels(module: ModuleOp) -> int:
    main = next(op for op in module.ops if isinstance(op, func.FuncOp))
    return sum(isinstance(op, host.KernelOp) for op in main.body.block.ops)


@pytest.mark.parametrize(("algorithm", "threads"), [("f2x3", 2), ("implicit_gemm", 0)])
def test_a_block_with_a_residual(algorithm: str, threads: int) -> None:
    """Checks that bias, sum, relu and limits are fused into the kernel, for batch 2 and odd
    sizes."""
    network = Network(_array(2, 8, 9, 3))
    (data,) = network.args
    first = _convolved(network, data, _array(8, 8, 3, 3))
    first = network.add(nn.BiasAddOp(first, network.constant(_array(8)), axis=1))
    first = network.add(elementwise.ClipOp(first, a_min=-0.5, a_max=6.0))
    second = _convolved(network, first, _array(8, 8, 3, 3))
    second = network.add(nn.BiasAddOp(second, network.constant(_array(8)), axis=1))
    result = network.add(nn.ReluOp(network.add(elementwise.AddOp(data, second))))
    _check(network, result, algorithm=algorithm, kernels=2, threads=threads)


@pytest.mark.parametrize(
    "attributes",
    [
        {"strides": [2, 3], "padding": [0, 2, 1, 0]},
        {"dilation": [2, 1], "padding": [3, 0, 0, 2]},
        {"strides": [2, 1], "dilation": [1, 2], "padding": [0, 0, 0, 0]},
    ],
    ids=str,
)
def test_windows(attributes: dict[str, Sequence[int]]) -> None:
    network = Network(_array(1, 4, 12, 7))
    result = _convolved(network, network.args[0], _array(12, 4, 3, 2), **attributes)
    _check(network, result, algorithm="implicit_gemm", kernels=1)


@pytest.mark.parametrize("threads", [0, 2])
def test_each_channel_by_itself(threads: int) -> None:
    """Checks a residual block, a 1-D convolution, and one whose groups have two results, which has
    no kernel.
    """
    network = Network(_array(2, 8, 9, 15))
    (data,) = network.args
    first = _convolved(network, data, _array(8, 1, 3, 3), groups=8)
    first = network.add(nn.BiasAddOp(first, network.constant(_array(8)), axis=1))
    first = network.add(nn.ReluOp(network.add(elementwise.AddOp(data, first))))
    second = _convolved(network, first, _array(8, 1, 5, 3), groups=8, strides=[2, 2])
    third = _convolved(network, first, _array(16, 1, 3, 3), groups=8)
    _check(network, second, third, algorithm="depthwise", kernels=2, threads=threads)


def test_lines_of_each_channel() -> None:
    network = Network(_array(2, 12, 8))
    result = _convolved(
        network, network.args[0], _array(12, 1, 5), padding=[0, 4], groups=12, dilation=[2]
    )
    _check(network, result, algorithm="depthwise", kernels=1)


def test_lines() -> None:
    network = Network(_array(2, 12, 8))
    first = _convolved(network, network.args[0], _array(24, 12, 5), padding=[0, 4], dilation=[2])
    second = _convolved(network, network.add(nn.ReluOp(first)), _array(8, 24, 3), strides=[2])
    _check(network, second, algorithm="implicit_gemm", kernels=2)


@pytest.mark.parametrize("threads", [0, 2])
def test_images_of_few_channels(threads: int) -> None:
    """Checks images that are padded first: on all sides, on some, with strides that leave pixels
    over.
    """
    network = Network(_array(2, 3, 9, 14))
    (data,) = network.args
    first = _convolved(network, data, _array(8, 3, 3, 3), strides=[2, 2])
    second = _convolved(network, data, _array(8, 3, 2, 5), padding=[0, 3, 2, 0], dilation=[2, 1])
    _check(network, first, second, algorithm="implicit_gemm", kernels=4, threads=threads)


def test_lines_of_one_channel() -> None:
    network = Network(_array(2, 1, 40))
    result = _convolved(network, network.args[0], _array(8, 1, 7), padding=[3, 2], strides=[3])
    _check(network, network.add(nn.ReluOp(result)), algorithm="implicit_gemm", kernels=2)


def test_what_follows() -> None:
    """Checks pools, slices, sums with an NCHW tensor, a concatenation and a mean of all pixels."""
    network = Network(_array(1, 4, 9, 6), _array(1, 16, 4, 3))
    data, plain = network.args
    convolved = _convolved(network, data, _array(16, 4, 3, 3))
    largest = _pooled(network, convolved, pool.MaxPool2DOp)
    mean = _pooled(network, convolved, pool.AvgPool2DOp)
    swish = network.add(elementwise.SigmoidOp(network.add(elementwise.AddOp(largest, plain))))
    product = network.add(elementwise.MultiplyOp(swish, mean))
    joined = network.add(transform.ConcatenateOp([plain, product, largest], axis=1))
    narrow = network.add(
        transform.StridedSliceOp(
            joined, begin=[0, 8, 1, 0], end=[1, 40, 4, 3], strides=[1, 2, 1, 2]
        )
    )
    again = _convolved(network, narrow, _array(8, 16, 1, 1), padding=[0, 0, 0, 0])
    total = network.add(pool.GlobalAvgPool2DOp(again))
    flat = network.add(transform.ReshapeOp(again, newshape=[1, -1]))
    _check(network, total, flat, joined, algorithm="implicit_gemm", kernels=2)


def _transposed(network: Network, weight: Array, **attributes: Any) -> SSAValue:
    rank = weight.ndim - 2
    kind = window.Conv1DTransposeOp if rank == 1 else window.Conv2DTransposeOp
    defaults = {
        "strides": [1] * rank,
        "padding": [0] * 2 * rank,
        "dilation": [1] * rank,
        "output_padding": [0] * rank,
    }
    constant = network.constant(weight)
    return network.add(kind(network.args[0], constant, **{**defaults, **attributes}))


@pytest.mark.parametrize(
    ("source", "weight", "attributes"),
    [
        (
            (2, 4, 5, 7),
            (4, 3, 4, 6),
            {"strides": [2, 3], "padding": [1, 0, 2, 4], "output_padding": [1, 2]},
        ),
        ((1, 4, 5, 7), (4, 1, 4, 6), {"strides": [2, 3], "groups": 4, "padding": [3, 5, 0, 0]}),
        ((1, 4, 5, 7), (4, 3, 2, 2), {"strides": [2, 1], "groups": 2}),
        ((1, 4, 5, 7), (4, 3, 3, 3), {"dilation": [2, 3], "groups": 2, "padding": [1, 1, 5, 2]}),
        ((1, 4, 5), (4, 2, 4), {"strides": [4], "padding": [3, 0], "output_padding": [3]}),
    ],
    ids=["places", "depthwise", "groups", "dilation", "lines"],
)
def test_transposed_convolutions(
    source: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any]
) -> None:
    network = Network(_array(*source))
    result = _transposed(network, _array(*weight), **attributes)
    module = network.returning(result)
    (wanted,) = evaluate(network.function, network.inputs)
    DecomposeTransposedConvolutions().apply(Context(), module)
    verify_module(module)
    assert not [op for op in module.walk() if "transpose" in op.name]
    assert_close(run_on_host(module, network.inputs)[0], wanted, 1e-5, "transposed")


def test_infinite_weights_meet_no_padding() -> None:
    network = Network(_array(1, 4, 5, 7))
    weight = _array(4, 3, 3, 3)
    weight[0, 0, 0, 0] = np.inf
    module = network.returning(_transposed(network, weight))
    before = str(module)
    DecomposeTransposedConvolutions().apply(Context(), module)
    assert str(module) == before


def test_others_stay() -> None:
    """Checks groups, computed weights and other types, which have no kernel."""
    network = Network(_array(1, 16, 6, 6), _array(16, 16, 3, 3), np.ones((1, 16, 6, 6)))
    data, weight, double = network.args
    window_: dict[str, Any] = {"strides": [1, 1], "padding": [1] * 4, "dilation": [1, 1]}
    grouped = _convolved(network, data, _array(16, 8, 3, 3), groups=2)
    computed = network.add(window.Conv2DOp(data, weight, **window_))
    wide = _convolved(network, double, np.ones((16, 16, 3, 3)))
    module = network.returning(grouped, computed, wide)
    before = str(module)
    ChooseConvolutionAlgorithms(1, "implicit_gemm").apply(Context(), module)
    assert str(module) == before


def test_an_algorithm_that_is_not_written_for_it() -> None:
    network = Network(_array(1, 16, 6, 6))
    result = _convolved(network, network.args[0], _array(16, 16, 1, 1))
    assert isinstance(result, OpResult)
    result.owner.attributes["algorithm"] = StringAttr("f4x3")
    module = network.returning(result)
    with pytest.raises(PassFailedException, match="'f4x3', which does not support it; accepted"):
        LowerConvolutions().apply(Context(), module)


def test_a_schedule_that_there_is_not() -> None:
    network = Network(_array(1, 16, 6, 6))
    result = _convolved(network, network.args[0], _array(48, 16, 1, 1))
    assert isinstance(result, OpResult)
    result.owner.attributes["algorithm"] = StringAttr("implicit_gemm")
    result.owner.attributes["schedule"] = StringAttr("panels=7")
    module = network.returning(result)
    with pytest.raises(PassFailedException, match="\"panels=7\", which 'implicit_gemm' does not"):
        LowerConvolutions().apply(Context(), module)
