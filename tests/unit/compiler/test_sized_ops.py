"""Ops whose sizes are arguments of native code, several of a kind in one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from onnx import ModelProto, TensorProto
from sized_models import Sizes, check_one_program, check_shapes, compiled

from byoc_mlir.testing.networks import GraphBuilder


@dataclass(frozen=True)
class _Result:
    """An output of a model."""

    value: str
    rank: int
    dtype: int = TensorProto.FLOAT


Network = Callable[[GraphBuilder], Sequence[_Result]]


def _model(network: Network) -> ModelProto:
    b = GraphBuilder("ops", seed=0, opset=18)
    for number, result in enumerate(network(b)):
        b.output(result.value, f"y{number}", [None] * result.rank, result.dtype)
    return b.build()


def _cut(b: GraphBuilder) -> Sequence[_Result]:
    x = b.input("x", ["n", "m", 6])
    return [
        _Result(b.op("Slice", x, b.ints(-1), b.ints(-1000), b.ints(1), b.ints(-1)), 3),
        _Result(b.op("Slice", x, b.ints(-1), b.ints(-1000), b.ints(1), b.ints(-2)), 3),
        _Result(b.op("Compress", x, b.constant([False, True, True]), axis=2), 3),
        _Result(b.op("Tile", x, b.ints(2, 1, 3)), 3),
        _Result(b.op("DepthToSpace", b.op("Unsqueeze", x, b.ints(3)), blocksize=1), 4),
    ]


def _triangles(b: GraphBuilder) -> Sequence[_Result]:
    x = b.input("x", ["n", "m"])
    return [
        _Result(b.op("Trilu", x, upper=0), 2),
        _Result(b.op("Trilu", x, b.constant(1)), 2),
        _Result(b.op("EyeLike", x, k=1), 2),
        _Result(b.op("Hardmax", x, axis=1), 2),
    ]


def _blocks(b: GraphBuilder) -> Sequence[_Result]:
    x = b.input("x", ["n", 8, "m", 3])
    even = b.op("Concat", x, x, axis=2)
    even = b.op("Concat", even, even, axis=3)
    return [
        _Result(b.op("DepthToSpace", x, blocksize=2), 4),
        _Result(b.op("DepthToSpace", x, blocksize=2, mode="CRD"), 4),
        _Result(b.op("SpaceToDepth", even, blocksize=2), 4),
    ]


def _turned(b: GraphBuilder) -> Sequence[_Result]:
    x, lengths = b.input("x", ["m", "n", 4]), b.input("lengths", ["n"], TensorProto.INT64)
    return [_Result(b.op("ReverseSequence", x, lengths), 3)]


def _largest(b: GraphBuilder) -> Sequence[_Result]:
    x, rows = b.input("x", ["n", "m", 6]), b.input("rows", ["n", 90])
    width = b.op("Gather", b.op("Shape", x), b.ints(1))
    some = b.op("Min", width, b.ints(3))
    found = [
        *b.ops("TopK", x, b.ints(4), outputs=2),
        *b.ops("TopK", x, b.ints(1), outputs=2, axis=1, largest=0),
        *b.ops("TopK", x, some, outputs=2, axis=1),
        *b.ops("TopK", x, width, outputs=2, axis=1),
    ]
    long = b.ops("TopK", rows, b.ints(80), outputs=2)
    kinds = [TensorProto.FLOAT, TensorProto.INT64]
    ranks = [3] * len(found) + [2] * len(long)
    return [
        _Result(value, rank, kinds[number % 2])
        for number, (value, rank) in enumerate(zip([*found, *long], ranks, strict=True))
    ] + [_Result(b.op("ArgMax", x, axis=2), 3, TensorProto.INT64)]


def _within(b: GraphBuilder, places: str, x: str, axis: int) -> str:
    """Places that are in `x` along an axis of any size but 0."""
    last = b.op("Sub", b.op("Gather", b.op("Shape", x), b.ints(axis)), b.ints(1))
    return b.op("Min", places, last)


def _placed(b: GraphBuilder) -> Sequence[_Result]:
    x = b.input("x", ["n", "m", 6])
    places = b.input("places", ["n", "m", 6], TensorProto.INT64)
    across = _within(b, places, x, 1)
    return [
        _Result(b.op("GatherElements", x, across, axis=1), 3),
        _Result(b.op("ScatterElements", x, across, x, axis=1, reduction="add"), 3),
        _Result(b.op("ScatterElements", x, places, x, axis=2, reduction="max"), 3),
    ]


def _at_coordinates(b: GraphBuilder) -> Sequence[_Result]:
    x, rows = b.input("x", ["n", "m", 6]), b.input("rows", ["k", "m", 6])
    places = b.input("places", ["k", 1], TensorProto.INT64)
    first = _within(b, places, x, 0)
    both = b.op("Concat", first, _within(b, places, x, 1), axis=1)
    of_batch = b.input("of_batch", ["n", "k", 1], TensorProto.INT64)
    return [
        _Result(b.op("GatherND", x, both), 2),
        _Result(b.op("GatherND", x, _within(b, of_batch, x, 1), batch_dims=1), 3),
        _Result(b.op("ScatterND", x, first, rows, reduction="add"), 3),
    ]


def _contracted(b: GraphBuilder) -> Sequence[_Result]:
    x, y = b.input("x", ["n", "m", 6]), b.input("y", ["n", "k", 6])
    weight = b.normal((6, 2, 3), 0.4)
    return [
        _Result(b.op("Einsum", x, y, equation="nmd,nkd->nmk"), 3),
        _Result(b.op("Einsum", x, weight, equation="nmd,dhe->nhme"), 4),
        _Result(b.op("Einsum", x, y, equation="nmd,nkd->md"), 2),
    ]


def _losses(b: GraphBuilder) -> Sequence[_Result]:
    scores = b.input("scores", ["n", 5, "m"])
    classes = b.input("classes", ["n", "m"], TensorProto.INT64)
    return [
        _Result(b.op("SoftmaxCrossEntropyLoss", scores, classes), 0),
        _Result(b.op("NegativeLogLikelihoodLoss", scores, classes, reduction="none"), 2),
    ]


def _sampled(b: GraphBuilder) -> Sequence[_Result]:
    image, rooms = b.input("image", [1, 2, "n", "m"]), b.input("rooms", ["k", 4])
    images, grid = b.input("images", ["n", 2, 5, 6]), b.input("grid", ["n", "k", 3, 2])
    places = b.op("Mul", b.input("places", ["k"], TensorProto.INT64), b.ints(0))
    size = {"output_height": 2, "output_width": 3, "sampling_ratio": 2}
    aligned = b.op("RoiAlign", image, rooms, places, **size)
    return [
        _Result(aligned, 4),
        _Result(b.op("GridSample", images, grid), 4),
        _Result(b.op("Det", b.input("matrices", ["n", "m", "m"])), 1),
    ]


_SIZES = [(4, 5, 3), (1, 1, 1), (7, 3, 2), (2, 33, 5), (1, 2, 9)]


def _sizes(*more: tuple[int, int, int]) -> list[Sizes]:
    return [{"n": n, "m": m, "k": k} for n, m, k in (*_SIZES, *more)]


@pytest.mark.parametrize("network", [_cut, _triangles, _blocks, _turned])
def test_ops_that_move_elements(network: Network) -> None:
    check_one_program(_model(network), _sizes((0, 3, 1)))


@pytest.mark.parametrize(
    "network", [_largest, _placed, _at_coordinates, _contracted, _losses, _sampled]
)
def test_ops_that_compute(network: Network) -> None:
    check_one_program(_model(network), _sizes())


def test_sizes_that_a_guard_excludes_make_no_program_twice() -> None:
    """Nothing can be gathered from no elements, and hints are never 0."""
    b = GraphBuilder("gathered", seed=0, opset=18)
    x, places = b.input("x", ["n", 6]), b.input("places", ["k"], TensorProto.INT64)
    b.output(b.op("Gather", x, places), "y", [None, None])
    model = b.build()
    with compiled(model) as executable:
        check_shapes(executable, model, [{"n": n, "k": k} for n, k in [(4, 3), (0, 0), (2, 1)]])
        assert len(executable.variants) == 1
        assert executable.compiled_in == 1


def test_computed_sizes_of_one_are_broadcast() -> None:
    """`m - 2` is 1 for one program, and what the other operands have for another."""
    b = GraphBuilder("broadcast", seed=0, opset=18)
    x = b.op("Slice", b.input("x", ["n", "m", 6]), b.ints(2), b.ints(1000), b.ints(1))
    b.output(b.op("Add", x, b.normal((4, 1), 1.0)), "sum", [None] * 3)
    b.output(
        b.op("MatMul", b.op("Unsqueeze", x, b.ints(2)), b.normal((4, 6, 5), 1.0)), "y", [None] * 4
    )
    model = b.build()
    with compiled(model) as executable:
        check_shapes(executable, model, [{"n": n, "m": m} for n, m in [(2, 3), (3, 6), (1, 3)]])
        assert len(executable.variants) == 2


def test_as_many_sizes_as_a_symbol_says_are_no_known_values() -> None:
    """The lengths of all sequences are the second size: `[m] * n`."""
    b = GraphBuilder("reversed", seed=0, opset=18)
    x = b.input("x", ["m", "n", 4])
    lengths = b.op("Expand", b.op("Shape", x, start=0, end=1), b.op("Shape", x, start=1, end=2))
    b.output(b.op("ReverseSequence", x, lengths), "y", [None] * 3)
    check_one_program(b.build(), [{"n": n, "m": m} for n, m in [(3, 5), (1, 2), (4, 4)]])
