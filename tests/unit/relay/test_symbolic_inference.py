"""Types inferred with symbols: at any sizes, equal to the types inferred for these sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f32, i64
from xdsl.ir import Attribute, Block

from byoc_mlir.dialects.relay import (
    RelayOp,
    elementwise,
    index,
    nn,
    pool,
    reduce,
    transform,
    window,
)
from byoc_mlir.dialects.relay.shape import asking, tensor_of, type_sizes
from byoc_mlir.dims import Shapes, Size, SymbolInfo, evaluated, largest, smallest, symbol

N, M = symbol("n"), symbol("m")
Types = Sequence[Sequence[Size]]


@dataclass(frozen=True)
class Case:
    """Op for given sizes `n` and `m`."""

    op: type[RelayOp]
    operands: Callable[[Any, Any], Types]
    properties: Callable[[Any, Any], dict[str, Any]] = field(default=lambda n, m: {})
    variadic: bool = False


def _window(*padding: int, stride: int = 1, **more: Any) -> Callable[[Any, Any], dict[str, Any]]:
    fixed = {"strides": [stride] * 2, "padding": list(padding), "dilation": [1, 1], **more}
    return lambda n, m: fixed


def _image(n: Any, m: Any) -> Types:
    return [[n, 3, m + 4, 2 * n + m]]


CASES = {
    "add": Case(elementwise.AddOp, lambda n, m: [[n, 1, m], [4, m]]),
    "where": Case(elementwise.MultiplyOp, lambda n, m: [[n + m, 1], [1, n * m]]),
    "dense": Case(nn.DenseOp, lambda n, m: [[n, m, 8], [5, 8]]),
    "matmul": Case(nn.MatmulOp, lambda n, m: [[n, 4, m, 8], [4, 8, m]]),
    "bias": Case(nn.BiasAddOp, lambda n, m: [[n, m], [m]]),
    "layer norm": Case(nn.LayerNormOp, lambda n, m: [[n, m, 8], [8], [8]]),
    "conv": Case(
        window.Conv2DOp, lambda n, m: [*_image(n, m), [6, 3, 3, 3]], _window(1, 1, 1, 1, stride=2)
    ),
    "conv transpose": Case(
        window.Conv2DTransposeOp,
        lambda n, m: [*_image(n, m), [3, 6, 3, 3]],
        _window(1, 1, 1, 1, stride=2, output_padding=[1, 1]),
    ),
    "pool": Case(pool.MaxPool2DOp, _image, _window(0, 1, 0, 1, stride=3, pool_size=[3, 3])),
    "pool by ceil": Case(
        pool.AvgPool2DOp, _image, _window(1, 1, 1, 1, stride=3, pool_size=[2, 2], ceil_mode=True)
    ),
    "global pool": Case(pool.GlobalAvgPool2DOp, _image),
    "mean": Case(reduce.MeanOp, _image, lambda n, m: {"axis": [1, -1], "keepdims": True}),
    "argmax": Case(reduce.ArgmaxOp, _image, lambda n, m: {"axis": [2]}),
    "reshape": Case(
        transform.ReshapeOp, lambda n, m: [[n, m, 8]], lambda n, m: {"newshape": [n, m, 2, 4]}
    ),
    "reshape to rows": Case(
        transform.ReshapeOp, lambda n, m: [[n, m, 8]], lambda n, m: {"newshape": [-1, 4 * m]}
    ),
    "transpose": Case(transform.TransposeOp, _image, lambda n, m: {"axes": [3, 1, 0, 2]}),
    "expand dims": Case(transform.ExpandDimsOp, _image, lambda n, m: {"axis": [0, -1]}),
    "broadcast": Case(
        transform.BroadcastToOp, lambda n, m: [[n, 1]], lambda n, m: {"shape": [m, n, m]}
    ),
    "concatenate": Case(
        transform.ConcatenateOp,
        lambda n, m: [[n, m], [n, 2 * m + 1]],
        lambda n, m: {"axis": 1},
        variadic=True,
    ),
    "split": Case(
        transform.SplitOp, lambda n, m: [[n + m, 3]], lambda n, m: {"sections": [n, m], "axis": 0}
    ),
    "slice": Case(
        transform.StridedSliceOp,
        lambda n, m: [[n, m]],
        lambda n, m: {"begin": [0, 1], "end": [smallest(n, 5), m], "strides": [1, 3]},
    ),
    "slice backward": Case(
        transform.StridedSliceOp,
        lambda n, m: [[n, m]],
        lambda n, m: {"begin": [n - 1, 0], "end": [-1, largest(m - 2, 0)], "strides": [-2, 1]},
    ),
    "pad": Case(transform.PadOp, lambda n, m: [[n, m]], lambda n, m: {"pad_width": [1, m, -1, 0]}),
    "take": Case(index.TakeOp, lambda n, m: [[9, n, 4], [m, 2]], lambda n, m: {"axis": 1}),
    "topk": Case(index.TopkOp, lambda n, m: [[n, m]], lambda n, m: {"k": 2, "axis": 1}),
}
INDICES: dict[type[RelayOp], int] = {index.TakeOp: 1}
"""Position of the operand with indices."""


def _types(case: Case, n: Size, m: Size) -> list[Attribute]:
    kinds = [
        tensor_of(i64 if INDICES.get(case.op) == place else f32, sizes)
        for place, sizes in enumerate(case.operands(n, m))
    ]
    values = list(Block(arg_types=kinds).args)
    operands = [values] if case.variadic else values
    return list(case.op(*operands, **case.properties(n, m)).result_types)


@pytest.mark.parametrize("name", CASES)
@given(st.integers(1, 9), st.integers(1, 9))
@settings(max_examples=12)
def test_inference(name: str, n: int, m: int) -> None:
    case = CASES[name]
    shapes = Shapes([SymbolInfo("n", min=1, hint=6), SymbolInfo("m", min=1, hint=7)])
    with asking(shapes):
        symbolic = _types(case, N, M)
    sizes = {"n": n, "m": m}
    if not all(guard.holds(sizes) for guard in shapes.guards):
        return
    for found, expected in zip(symbolic, _types(case, n, m), strict=True):
        assert isinstance(found, TensorType)
        assert isinstance(expected, TensorType)
        assert [evaluated(size, sizes) for size in type_sizes(found)] == list(expected.get_shape())
        assert found.element_type == expected.element_type
