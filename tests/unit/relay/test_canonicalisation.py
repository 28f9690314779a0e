"""`fold-constants`, `fold-batch-norm` and `simplify`: results do not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block, Region, SSAValue

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.locations import node_location, node_names
from byoc_mlir.dialects.relay import (
    ConstantOp,
    RelayOp,
    elementwise,
    nn,
    pool,
    qnn_window,
    transform,
    window,
)
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.element_types import ui8
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.transforms.fold_batch_norm import FoldBatchNorm
from byoc_mlir.transforms.fold_constants import FoldConstants
from byoc_mlir.transforms.simplify import Simplify


class Network:
    """Function of one input, built op by op, with seeded random constants."""

    def __init__(self, shape: tuple[int, ...], seed: int):
        self.rng = np.random.default_rng(seed)
        self.block = Block(arg_types=[TensorType(f32, shape)])
        self.last: SSAValue = self.block.args[0]
        self.count = 0

    def constant(self, *shape: int, positive: bool = False) -> SSAValue:
        array = self.rng.standard_normal(shape).astype(np.float32)
        op = ConstantOp.of("w", np.abs(array) + np.float32(0.1) if positive else array)
        self.block.add_op(op)
        return op.output

    def add(self, op: type[RelayOp], *operands: SSAValue, **properties: Any) -> None:
        created = op(self.last, *operands, **properties)
        created.location = node_location(f"n{self.count}")
        self.count += 1
        self.block.add_op(created)
        self.last = created.results[0]

    def batch_norm(self, axis: int = 1) -> None:
        size = shape_of(self.last)[axis]
        parameters = [self.constant(size) for _ in range(3)]
        self.add(nn.BatchNormOp, *parameters, self.constant(size, positive=True), axis=axis)

    def module(self) -> ModuleOp:
        self.block.add_op(func.ReturnOp(self.last))
        types = [argument.type for argument in self.block.args], [self.last.type]
        return ModuleOp([func.FuncOp("main", types, Region(self.block))])

    def run(self, module: ModuleOp) -> np.ndarray:
        (main,) = (op for op in module.walk() if isinstance(op, func.FuncOp))
        shape = shape_of(main.body.block.args[0])
        data = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        (result,) = evaluate(main, [data])
        return result


def _canonicalise(module: ModuleOp) -> list[str]:
    for each in (FoldConstants(), Simplify(), FoldBatchNorm(), FoldConstants(), Simplify()):
        each.apply(make_context(), module)
        module.verify()
    return [
        op.name.removeprefix("relay.")
        for op in module.walk()
        if isinstance(op, RelayOp) and not isinstance(op, ConstantOp)
    ]


def _check(network: Network, expected: list[str]) -> None:
    module = network.module()
    before = network.run(module)
    nodes = {name for op in module.walk() for name in node_names(op)}
    assert _canonicalise(module) == expected
    after = network.run(module)
    assert after.dtype == before.dtype
    np.testing.assert_allclose(after, before, rtol=1e-4, atol=1e-5)
    assert {name for op in module.walk() for name in node_names(op)} == nodes


@pytest.mark.values
@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_batch_norm_after_convolution(groups: int, with_bias: bool) -> None:
    network = Network((2, 4, 7, 5), seed=groups)
    weight = network.constant(8, 4 // groups, 3, 2)
    place = {"strides": [2, 1], "padding": [1, 0, 0, 2], "dilation": [1, 2]}
    network.add(window.Conv2DOp, weight, groups=groups, **place)
    if with_bias:
        network.add(nn.BiasAddOp, network.constant(8), axis=1)
    network.batch_norm()
    _check(network, ["nn.conv2d", "nn.bias_add"])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_batch_norm_after_transposed_convolution(groups: int) -> None:
    network = Network((2, 4, 5, 4), seed=groups)
    weight = network.constant(4, 3, 3, 2)
    place = {"strides": [2, 1], "padding": [1, 0, 0, 1], "dilation": [1, 2]}
    network.add(window.Conv2DTransposeOp, weight, groups=groups, output_padding=[1, 0], **place)
    network.batch_norm()
    _check(network, ["nn.conv2d_transpose", "nn.bias_add"])


def test_batch_norm_scale_and_shift_after_dense() -> None:
    network = Network((2, 3, 4), seed=0)
    network.add(nn.DenseOp, network.constant(5, 4))
    network.batch_norm(axis=2)
    network.add(elementwise.MultiplyOp, network.constant(5))
    network.add(elementwise.AddOp, network.constant(1, 1, 5))
    network.add(elementwise.SubtractOp, network.constant())
    _check(network, ["nn.dense", "nn.bias_add"])


def test_batch_norm_along_another_axis_stays() -> None:
    network = Network((2, 3, 4), seed=0)
    network.add(nn.DenseOp, network.constant(5, 4))
    network.batch_norm(axis=1)
    _check(network, ["nn.dense", "nn.batch_norm"])


def _bias_of_rows(network: Network) -> None:
    rank = len(shape_of(network.last))
    network.add(elementwise.AddOp, network.constant(*[1] * (rank - 1), shape_of(network.last)[-1]))


def _permuted(network: Network, seed: int) -> None:
    rank = len(shape_of(network.last))
    axes = np.random.default_rng(seed).permutation(rank).tolist()
    network.add(transform.TransposeOp, axes=axes)


def _flat(network: Network) -> None:
    network.add(transform.ReshapeOp, newshape=[-1])


def _columns(network: Network) -> None:
    network.add(transform.ReshapeOp, newshape=[-1, 2])


STEPS: dict[str, Callable[[Network], None]] = {
    "relu": lambda network: network.add(nn.ReluOp),
    "clip": lambda network: network.add(elementwise.ClipOp, a_min=-0.5, a_max=1.0),
    "clip_positive": lambda network: network.add(elementwise.ClipOp, a_min=0.0, a_max=6.0),
    "flat": _flat,
    "columns": _columns,
    "expand": lambda network: network.add(transform.ExpandDimsOp, axis=[0]),
    "transpose_1": lambda network: _permuted(network, 1),
    "transpose_2": lambda network: _permuted(network, 2),
    "add": _bias_of_rows,
    "cast": lambda network: network.add(elementwise.CastOp, dtype=f32),
    "pad": lambda network: network.add(
        transform.PadOp, pad_width=[1, -1] * len(shape_of(network.last))
    ),
}


@given(st.lists(st.sampled_from(sorted(STEPS)), max_size=10), st.integers(0, 3))
def test_chains_of_simplifiable_ops(steps: list[str], seed: int) -> None:
    network = Network((2, 1, 6), seed)
    for step in steps:
        if len(shape_of(network.last)) < 6:
            STEPS[step](network)
    module = network.module()
    before = network.run(module)
    _canonicalise(module)
    np.testing.assert_array_equal(network.run(module), before)


@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.sampled_from([0.0, 1.0, -np.inf]),
    st.lists(st.integers(0, 1), min_size=4, max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_paddings_before_windows(
    widths: list[int], fill: float, padding: list[int], ceil: bool, counted: bool
) -> None:
    place = {"strides": [2, 1], "padding": padding, "dilation": [1, 1]}
    options = {"pool_size": [3, 2], "ceil_mode": ceil}
    for kind in ("conv", "avg", "max"):
        network = Network((1, 2, 5, 6), seed=0)
        weight = network.constant(3, 2, 3, 2)
        network.add(transform.PadOp, pad_width=[0, 0, 0, 0, *widths], pad_value=fill)
        if kind == "conv":
            network.add(window.Conv2DOp, weight, **place)
        elif kind == "avg":
            network.add(pool.AvgPool2DOp, count_include_pad=counted, **options, **place)
        else:
            network.add(pool.MaxPool2DOp, **options, **place)
        module = network.module()
        before = network.run(module)
        _canonicalise(module)
        np.testing.assert_allclose(network.run(module), before, rtol=1e-5, atol=1e-6)


_SMALL = st.integers(0, 4)


@given(
    st.tuples(st.integers(1, 3), st.integers(1, 6)),
    st.tuples(st.integers(1, 5), st.integers(1, 4)),
    st.tuples(_SMALL, _SMALL, _SMALL, _SMALL),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([1, 2]),
)
def test_taps_on_padding(
    image: tuple[int, ...],
    taps: tuple[int, ...],
    padding: tuple[int, ...],
    strides: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
) -> None:
    extents = [(each - 1) * apart + 1 for each, apart in zip(taps, dilation, strict=True)]
    padded = [size + padding[axis] + padding[axis + 2] for axis, size in enumerate(image)]
    assume(all(extent <= size for extent, size in zip(extents, padded, strict=True)))
    network = Network((1, 4, *image), seed=0)
    weight = network.constant(2, 4 // groups, *taps)
    place = {"strides": strides, "padding": padding, "dilation": dilation}
    network.add(window.Conv2DOp, weight, groups=groups, **place)
    module = network.module()
    before = network.run(module)
    _canonicalise(module)
    np.testing.assert_allclose(network.run(module), before, rtol=1e-5, atol=1e-6)


@given(
    st.integers(1, 3),
    st.integers(1, 5),
    st.tuples(_SMALL, _SMALL),
    st.integers(1, 3),
    st.integers(0, 255),
    st.sampled_from([1, 2]),
)
def test_taps_of_bytes_on_padding(
    pixels: int, taps: int, padding: tuple[int, int], stride: int, zero_point: int, groups: int
) -> None:
    assume(taps <= pixels + sum(padding))
    rng = np.random.default_rng(0)
    data = TensorType(ui8, (1, 4, pixels))
    block = Block(arg_types=[data])
    constants = [
        ConstantOp.of("w", rng.integers(-128, 128, (2, 4 // groups, taps), np.int8)),
        ConstantOp.of("data_zero_point", np.array(zero_point, np.uint8)),
        ConstantOp.of("weight_zero_points", np.array([3, -5], np.int8)),
    ]
    place: dict[str, Any] = {"strides": [stride], "padding": padding, "dilation": [1]}
    values = [constant.output for constant in constants]
    product = qnn_window.Conv1DOp(block.args[0], *values, groups=groups, **place)
    block.add_ops([*constants, product, func.ReturnOp(product.output)])
    types = [data], [product.output.type]
    main = func.FuncOp("main", types, Region(block))
    module = ModuleOp([main])
    numbers = rng.integers(0, 256, (1, 4, pixels), np.uint8)
    (before,) = evaluate(main, [numbers])
    _canonicalise(module)
    (after,) = evaluate(main, [numbers])
    np.testing.assert_array_equal(after, before)


@given(st.data())
def test_windows_of_pools_beyond_the_image(data: st.DataObject) -> None:
    draw = data.draw
    kind = draw(st.sampled_from([pool.MaxPool2DOp, pool.AvgPool2DOp]))
    shape = (1, 2, draw(st.integers(1, 7)), draw(st.integers(1, 7)))
    size, dilation = [draw(st.integers(1, 12)) for _ in range(2)], draw(st.integers(1, 2))
    padding = [draw(st.integers(0, length - 1)) for length in (*size, *size)]
    for axis, length in enumerate(size):
        padded = shape[2 + axis] + padding[axis] + padding[2 + axis]
        assume((length - 1) * dilation + 1 <= padded)
    counts = {"count_include_pad": draw(st.booleans())} if kind is pool.AvgPool2DOp else {}
    network = Network(shape, seed=0)
    strides = [draw(st.integers(1, 4)) for _ in range(2)]
    window_of = {"pool_size": size, "strides": strides, "padding": padding}
    ceil = draw(st.booleans())
    network.add(kind, **window_of, dilation=[dilation] * 2, ceil_mode=ceil, **counts)
    module = network.module()
    before = network.run(module)
    Simplify().apply(make_context(), module)
    module.verify()
    np.testing.assert_allclose(network.run(module), before, rtol=1e-6, atol=1e-6)


def test_windows_of_any_size_are_cut_at_once() -> None:
    network = Network((1, 1, 5, 5), seed=0)
    size, padding = 1 << 40, [0, 0, (1 << 40) - 5, (1 << 40) - 5]
    whole = {"strides": [1, 1], "padding": padding, "dilation": [1, 1]}
    network.add(pool.MaxPool2DOp, pool_size=[size, size], **whole)
    module = network.module()
    Simplify().apply(make_context(), module)
    (op,) = (op for op in module.walk() if isinstance(op, pool.MaxPool2DOp))
    assert tuple(op.pool_size.get_values()) == (5, 5)
