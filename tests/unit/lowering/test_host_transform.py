"""Ops that move elements, aliasing and buffer reuse, on the host against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from host_runner import Array, Network, check_on_host

from byoc_mlir.dialects.relay import elementwise, nn
from byoc_mlir.dialects.relay import transform as relay


def _numbers(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32)


def test_views() -> None:
    network = Network(_numbers(2, 3, 4), _numbers(2, 1, 3, 1))
    x, thin = network.args
    results = [
        network.add(relay.ReshapeOp(x, newshape=[6, -1])),
        network.add(relay.ReshapeOp(x, newshape=[24])),
        network.add(relay.ExpandDimsOp(x, axis=[0, -1])),
        network.add(relay.SqueezeOp(thin, axis=[1, 3])),
        network.add(relay.TransposeOp(x, axes=[2, 0, 1])),
        network.add(relay.TransposeOp(thin, axes=[0, 2, 1, 3])),
        network.add(relay.BroadcastToOp(thin, shape=[2, 2, 3, 5])),
        network.add(relay.StridedSliceOp(x, begin=[0, 1, 0], end=[2, 3, 4], strides=[1, 1, 2])),
        network.add(
            relay.StridedSliceOp(x, begin=[1, 2, 3], end=[-1, 0, -1], strides=[-1, -1, -2])
        ),
    ]
    check_on_host(network, *results)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((64, 512), (1, 0)),  # 16 KB apart in one set: sides of 8
        ((1024, 16), (1, 0)),
        ((20, 2048), (1, 0)),
        ((67, 1111), (1, 0)),  # rests along both sides
        ((300, 65), (1, 0)),
        ((40, 24, 56), (2, 1, 0)),
        ((24, 56, 36), (2, 0, 1)),
    ],
)
@pytest.mark.parametrize("type_", [np.int8, np.float32, np.float64])
def test_transpositions_in_blocks(
    shape: tuple[int, ...], axes: tuple[int, ...], type_: type[np.generic]
) -> None:
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(type_)
    network = Network(x)
    (value,) = network.args
    check_on_host(network, network.add(relay.TransposeOp(value, axes=list(axes))))


def test_a_broadcast_operand_beside_one_that_is_turned() -> None:
    network = Network(_numbers(64, 1024), _numbers(1024, 1))
    x, column = network.args
    turned = network.add(relay.TransposeOp(x, axes=[1, 0]))
    check_on_host(network, network.add(elementwise.MultiplyOp(turned, column)))


def test_views_of_computed_values() -> None:
    network = Network(_numbers(4, 6, 5))
    (x,) = network.args
    base = network.add(nn.ReluOp(x))
    sliced = network.add(
        relay.StridedSliceOp(base, begin=[1, 0, 1], end=[3, 6, 4], strides=[1] * 3)
    )
    rows = network.add(relay.StridedSliceOp(base, begin=[2, 0, 0], end=[4, 6, 5], strides=[1] * 3))
    results = [
        network.add(relay.ReshapeOp(sliced, newshape=[-1])),
        network.add(relay.ReshapeOp(rows, newshape=[10, 6])),
        sliced,
        rows,
        network.add(elementwise.NegativeOp(sliced)),
    ]
    check_on_host(network, *results)


def test_concatenate_and_split() -> None:
    network = Network(_numbers(2, 3, 4), _numbers(2, 5, 4))
    x, y = network.args
    joined = network.add(relay.ConcatenateOp([x, y, x], axis=1))
    relu = network.add(nn.ReluOp(joined))
    split = relay.SplitOp(relu, sections=[4, 1, 6], axis=1)
    network.add(split)
    parts = split.outputs
    again = network.add(relay.ConcatenateOp([parts[2], parts[0]], axis=-2))
    computed = [network.add(op(x)) for op in (elementwise.ExpOp, elementwise.NegativeOp)]
    pair = network.add(relay.ConcatenateOp([*computed, x], axis=-1))
    single = network.add(relay.ConcatenateOp([y], axis=0))
    check_on_host(network, joined, *parts, again, computed[0], pair, single)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
@pytest.mark.parametrize("widths", [(1, 1), (1, 1, 1), (1,) * 5, (0, 2), (2, 0, 1)])
def test_narrow_tensors_are_joined(dtype: type, widths: tuple[int, ...]) -> None:
    network = Network(*((10 * _numbers(3, 37, width)).astype(dtype) for width in widths))
    check_on_host(network, network.add(relay.ConcatenateOp(network.args, axis=-1)))


def test_pads() -> None:
    network = Network(_numbers(2, 3, 4))
    (x,) = network.args
    widths = [0, 1, 2, 1, 2, 3]
    results = [
        network.add(
            relay.PadOp(
                x,
                pad_width=widths if mode != "reflect" else [0, 1, 2, 1, 2, 3],
                pad_mode=mode,
                pad_value=-1.5,
            )
        )
        for mode in ("constant", "edge", "reflect", "wrap")
    ]
    results.append(network.add(relay.PadOp(x, pad_width=[0, 0, -1, 2, 1, -2])))
    results.append(network.add(relay.PadOp(x, pad_width=[0, 0, -1, 0, -1, -2])))
    check_on_host(network, *results)


def test_results_that_are_inputs_constants_or_each_other() -> None:
    network = Network(_numbers(3, 4))
    (x,) = network.args
    constant = network.constant(_numbers(20, 2))
    relu = network.add(nn.ReluOp(x))
    flat = network.add(relay.ReshapeOp(relu, newshape=[12]))
    doubled = network.add(elementwise.AddOp(relu, relu))
    check_on_host(network, x, constant, relu, relu, flat, doubled, doubled)


def test_values_that_outlive_their_readers() -> None:
    network = Network(_numbers(8, 8))
    (x,) = network.args
    a = network.add(elementwise.ExpOp(x))
    b = network.add(elementwise.NegativeOp(a))
    turned = network.add(relay.TransposeOp(b, axes=[1, 0]))
    c = network.add(elementwise.AddOp(b, turned))
    d = network.add(elementwise.MultiplyOp(c, a))
    e = network.add(elementwise.SubtractOp(d, c))
    f = network.add(elementwise.AddOp(e, network.add(relay.TransposeOp(e, axes=[1, 0]))))
    check_on_host(network, f, d)
