"""`split-products`: the sums of the longer `bf16` matmuls, on any machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from byoc_mlir.abi import COMPUTED_IN
from byoc_mlir.backends import Backend, Profitability, Rule, register_backend
from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.testing.conformance.accuracy import expected
from byoc_mlir.testing.conformance.graph import Case, CaseBuilder
from byoc_mlir.transforms.split_products import SplitProducts

Array = npt.NDArray[Any]

BOUND = 3e-5
"""Maximum error of an element, relative to the largest."""

_PRODUCTS = (
    "nn.dense",
    "nn.matmul",
    *(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
)


@register_backend
class Splitting(Backend):
    """Backend for which splitting is profitable for any matmul."""

    name = "splitting"

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(_PRODUCTS, lambda op: None)

    def profitability(self, element_type: str) -> Profitability:
        return Profitability(frozenset(_PRODUCTS) if element_type == "bf16x3" else frozenset())

    def codegen(self, region: Any, context: Any) -> Any:
        raise NotImplementedError  # models are partitioned here, not compiled


def _case(
    kind: str, data: Array, weight: Array, *, constant: bool = True, **properties: Any
) -> Case:
    builder = CaseBuilder()
    operands = [builder.input(data), (builder.constant if constant else builder.input)(weight)]
    (result,) = builder.op(kind, operands, **properties).results
    return builder.case(kind, "", [result])


def _split(module: ModuleOp) -> tuple[FuncOp, list[Operation]]:
    """Returns the function with its matmuls split, and the split matmuls."""
    changed = module.clone()
    SplitProducts(("splitting",)).apply(Context(), changed)
    changed.verify()
    (function,) = (op for op in changed.body.block.ops if isinstance(op, FuncOp))
    return function, [op for op in function.body.block.ops if COMPUTED_IN in op.attributes]


def _check(case: Case) -> None:
    (function,) = (op for op in case.module.body.block.ops if isinstance(op, FuncOp))
    (wanted,) = expected(function, case.inputs)
    changed, products = _split(case.module)
    assert len(products) == 1
    (found,) = evaluate(changed, case.inputs)
    assert found.dtype == np.float32
    assert np.abs(found - wanted).max() <= BOUND * np.abs(wanted).max()


def _normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _window(rank: int, stride: int, padding: int, dilation: int = 1) -> dict[str, Any]:
    return {
        "strides": [stride] * rank,
        "padding": [padding] * (2 * rank),
        "dilation": [dilation] * rank,
    }


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(
    ("kind", "shapes", "properties"),
    [
        ("nn.dense", [(5, 40), (7, 40)], {}),
        ("nn.dense", [(2, 3, 40), (7, 40)], {}),
        ("nn.matmul", [(2, 3, 5, 40), (3, 40, 7)], {}),
        ("nn.matmul", [(3, 40, 5), (3, 7, 40)], {"transpose_a": True, "transpose_b": True}),
        ("nn.conv1d", [(2, 4, 9), (6, 4, 3)], _window(1, 2, 1)),
        ("nn.conv2d", [(2, 3, 9, 8), (5, 3, 3, 3)], _window(2, 1, 1, 2)),
        ("nn.conv2d", [(1, 6, 9, 8), (4, 3, 3, 3)], {**_window(2, 2, 1), "groups": 2}),
        ("nn.conv2d", [(1, 6, 5, 5), (6, 1, 3, 3)], {**_window(2, 1, 1), "groups": 6}),
        ("nn.conv3d", [(1, 2, 5, 4, 4), (3, 2, 2, 2, 2)], _window(3, 1, 0)),
        (
            "nn.conv2d_transpose",
            [(1, 6, 5, 5), (6, 2, 3, 3)],
            {**_window(2, 2, 1), "groups": 3, "output_padding": [1, 0]},
        ),
    ],
)
def test_a_product(
    kind: str, shapes: list[tuple[int, ...]], properties: dict[str, Any], constant: bool
) -> None:
    data, weight = (_normal(*shape, seed=index) for index, shape in enumerate(shapes))
    _check(_case(kind, data, weight, constant=constant, **properties))


@pytest.mark.parametrize("seed", range(20))
def test_a_convolution_of_any_shape(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank, groups = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    inputs, outputs = (groups * int(rng.integers(1, 5)) for _ in range(2))
    kernel = rng.integers(1, 4, rank)
    stride, padding, dilation = map(int, rng.integers((1, 0, 1), (4, 3, 3)))
    data = (int(rng.integers(1, 3)), inputs, *rng.integers(5, 8, rank))
    weight = (outputs, inputs // groups, *kernel)
    properties = {**_window(rank, stride, padding, dilation), "groups": groups}
    arrays = _normal(*data, seed=seed), _normal(*weight, seed=seed + 1)
    _check(_case(f"nn.conv{rank}d", *arrays, constant=bool(seed % 2), **properties))


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e15])
def test_numbers_of_any_size(scale: float) -> None:
    _check(_case("nn.dense", scale * _normal(5, 64), _normal(7, 64, seed=1)))


def test_a_tensor_times_itself_is_split_once() -> None:
    builder = CaseBuilder()
    x = builder.input(_normal(6, 24))
    (square,) = builder.op("nn.matmul", [x, x], transpose_b=True).results
    (dense,) = builder.op("nn.dense", [x, builder.constant(_normal(4, 24))]).results
    changed, products = _split(builder.case("nn.matmul", "", [square, dense]).module)
    assert len(products) == 2
    assert products[0].operands[0] is products[1].operands[0]
    assert isinstance(products[1].operands[1].owner, ConstantOp)
    assert sum(op.name == "relay.concatenate" for op in changed.body.block.ops) == 2


_LARGEST = np.finfo(np.float32).max


@pytest.mark.pairs
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, _LARGEST, -_LARGEST, 3.4e38])
@pytest.mark.parametrize("times", [1.0, -0.3, 0.0, np.inf, 1.7])
def test_numbers_that_are_not_finite_or_almost(number: float, times: float, constant: bool) -> None:
    data, weight = np.ones((2, 8), np.float32), _normal(3, 8)
    data[0, 3], weight[0, 3] = number, times
    case = _case("nn.dense", data, weight, constant=constant)
    with np.errstate(all="ignore"):
        wanted = data @ weight.T
    changed, _ = _split(case.module)
    (found,) = evaluate(changed, case.inputs)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    np.testing.assert_allclose(found, wanted, rtol=BOUND, atol=BOUND)
