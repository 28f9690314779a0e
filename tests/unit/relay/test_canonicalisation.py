"""`fold-constants`, `fold-batch-norm` and `simplify` leave the numbers as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Block, Region, SSAValue

from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.locations import node_location, node_names
from byoc_mlir.dialects.relay import ConstantOp, RelayOp, elementwise, nn, pool, transform, window
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.transforms.fold_batch_norm import FoldBatchNorm
from byoc_mlir.transforms.fold_constants import FoldConstants
from byoc_mlir.transforms.simplify import Simplify


class Network:
    """A function of one input, built op by op, with seeded random constants."""

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
