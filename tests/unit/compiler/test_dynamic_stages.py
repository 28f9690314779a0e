"""Models split at data-dependent shapes: each segment's program serves all computed sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from helpers.models import parsed
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

import byoc_mlir
from byoc_mlir.runtime.plan import Staged
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

Feeds: TypeAlias = Sequence[Mapping[str, NDArray[np.float32]]]


def _check(model: ModelProto, feeds: Feeds) -> None:
    """Asserts that no segment is compiled for a computed size."""
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        assert isinstance(executable.plan, Staged)
        for inputs in feeds:
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        variants = executable.report().variants
        assert variants
        assert not any(one.shapes or one.reason for one in variants), variants


def _mask(rows: int, columns: int, count: int) -> NDArray[np.float32]:
    """Returns a matrix with `count` nonzero elements."""
    mask = np.zeros(rows * columns, np.float32)
    mask[np.random.default_rng(count).permutation(mask.size)[:count]] = 1.5
    return mask.reshape(rows, columns)


def _rows_that_count(b: GraphBuilder, rows: int | str) -> None:
    x = b.input("x", [rows, 4])
    found = b.transpose(b.op("NonZero", x), 1, 0)
    values = b.op("GatherND", b.op("Exp", x), found)
    b.output(found, "found", [None, 2], TensorProto.INT64)
    b.output(b.op("Softmax", values, axis=0), "values", [None])


def test_places_that_are_not_zero() -> None:
    b = GraphBuilder("found", seed=0)
    _rows_that_count(b, 6)
    _check(b.build(), [{"x": _mask(6, 4, count)} for count in (5, 3, 1, 24, 0, 7)])


def test_places_in_tensors_of_any_size() -> None:
    b = GraphBuilder("found", seed=0)
    _rows_that_count(b, "n")
    sizes = [(6, 5), (2, 3), (1, 1), (9, 20), (1, 4)]
    _check(b.build(), [{"x": _mask(rows, 4, count)} for rows, count in sizes])


def test_rows_that_are_kept() -> None:
    b = GraphBuilder("kept", seed=0)
    x = b.input("x", ["n", 4])
    is_kept = b.op("Greater", b.op("ReduceMax", x, axes=[1], keepdims=0), b.scalar(1.0))
    kept = b.op("Compress", x, is_kept, axis=0)
    b.output(b.linear(b.op("Tanh", kept), 3), "y", [None, 3])
    _check(b.build(), [{"x": _mask(rows, 4, count)} for rows, count in [(6, 5), (3, 1), (9, 0)]])


def test_boxes_that_are_left() -> None:
    b = GraphBuilder("boxes", seed=0)
    boxes, scores = b.input("boxes", [1, "n", 4]), b.input("scores", [1, 2, "n"])
    limits = [b.constant(np.array([limit], np.float32)) for limit in (0.4, 0.0)]
    selected = b.op("NonMaxSuppression", boxes, scores, b.ints(5), *limits)
    b.output(b.op("GatherND", scores, selected), "scores_of", [None])
    places = b.op("Gather", selected, b.ints(0, 2), axis=1)
    b.output(b.op("Mul", b.op("GatherND", boxes, places), b.scalar(2.0)), "found", [None, 4])
    rng = np.random.default_rng(0)
    feeds = [
        {
            "boxes": rng.random((1, count, 4), np.float32),
            "scores": rng.standard_normal((1, 2, count), np.float32),
        }
        for count in (9, 4, 1, 30, 12)
    ]
    _check(b.build(), feeds)


_DETECTOR = """
    s = Shape <start = 2> (x)
    least = ReduceMin <keepdims = 0> (s)
    float_least = Cast <to = 1> (least)
    scale = Div (size, float_least)
    f = Cast <to = 1> (s)
    scaled = Mul (f, scale)
    floored = Floor (scaled)
    resized = Cast <to = 7> (floored)
    front = Shape <start = 0, end = 2> (x)
    sizes = Concat <axis = 0> (front, resized)
    r = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (x, , , sizes)

    rs = Shape (r)
    channels = Slice (rs, one, two)
    float_channels = Cast <to = 1> (channels)
    whole_channels = Cast <to = 7> (float_channels)
    more_channels = Sub (whole_channels, channels)
    image = Slice (rs, two, four)
    float_image = Cast <to = 1> (image)
    eighths = Div (float_image, eight)
    up = Ceil (eighths)
    whole = Mul (up, eight)
    padded = Cast <to = 7> (whole)
    more = Sub (padded, image)
    pads = Concat <axis = 0> (zero, zeros, zero, zero, more_channels, more)
    p = Pad (r, pads)
    y = Conv <pads = [1, 1, 1, 1]> (p, k)

    line = Reshape (y, flat)
    count = Shape <start = 1> (line)
    counts = Concat <axis = 0> (count, most)
    fewest = ReduceMin <keepdims = 1> (counts)
    best, places = TopK (line, fewest)

    bright = Greater (x, low)
    found = NonZero (bright)
    values = Transpose <perm = [1, 0]> (found)
    column = Gather <axis = 1> (values, three)
    number = Shape <start = 0, end = 1> (column)
    rows_shape = Concat <axis = 0> (number, all)
    over = Greater (column, zero)
    kept = NonZero (over)
    kept_count = Shape <start = 1> (kept)
    kept_float = Cast <to = 1> (kept_count)
    twice = Concat <axis = 1> (column, column)
    long = Reshape (twice, all)
    pairs = Reshape (long, rows_shape)
    float_pairs = Cast <to = 1> (pairs)
    rows = Add (float_pairs, kept_float)
"""


def test_sizes_rounded_from_floats() -> None:
    """Asserts that a detector's rounded sizes, paddings and counts are symbols in all segments."""
    rng = np.random.default_rng(0)
    ints = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "most": 30, "all": -1}
    constants = {name: np.array([number]) for name, number in ints.items()}
    floats = {"size": 16, "eight": 8, "low": 0.6}
    constants |= {name: np.array(number, np.float32) for name, number in floats.items()}
    constants |= {"zeros": np.zeros(2, np.int64), "flat": np.array([1, -1])}
    model = parsed(
        "(float[1, 3, h, w] x) => (float[1, 8, H, W] y, float[1, K] best, float[R, 2] rows)",
        _DETECTOR,
        {"k": rng.random((8, 3, 3, 3), np.float32), **constants},
    )
    sizes = [(20, 30), (22, 30), (30, 23), (40, 41), (16, 20)]
    _check(model, [{"x": rng.random((1, 3, *each), np.float32)} for each in sizes])
