"""Samples of each Relay op.

Every property of an op has two values among its samples, so that a backend which ignores a property
is found: `tests/unit/conformance/test_samples.py` checks this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import f32, f64

from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.testing.samples.relay_ops import shapes
from byoc_mlir.testing.samples.relay_ops.index import SAMPLES_WITH_PLACES
from byoc_mlir.testing.samples.relay_ops.quantised import (
    QUANTISED_SAMPLES,
    quantised_convolutions,
    quantised_pools,
)
from byoc_mlir.testing.samples.relay_ops.recurrent import RECURRENT_SAMPLES
from byoc_mlir.testing.samples.relay_ops.sample import Range, Rest, Sample, Shape
from byoc_mlir.testing.samples.relay_ops.vision import VISION_SAMPLES

IMAGE, ROWS, SEQUENCE, VECTOR = (2, 4, 9, 8), (3, 8), (2, 5, 8), (7,)
SPATIAL: Mapping[int, Shape] = {1: (2, 4, 9), 2: IMAGE, 3: (1, 4, 6, 5, 7)}
POSITIVE: Range = (0.2, 3.0)
LONG = 5000
"""Number of terms in a long sum."""
LARGE = (2, 8, 20, 16)
"""Shape that is large enough for a backend that refuses small ones."""


def samples_of(name: str) -> Sequence[Sample]:
    """Returns the samples of a Relay op, the first also in other element types; empty if none are
    known.
    """
    known = tuple(_SAMPLES.get(name, ()))
    if not known or known[0].dtype != "float32":
        return known
    dtypes = ("float64", "float16", "int32") if name in _ALSO_INTEGER else ("float64", "float16")
    others = [replace(known[0], dtype=dtype) for dtype in dtypes]
    if name in _LARGE_INTEGERS:
        large = (2**24 - 40, 2**24 + 40)
        others.append(replace(known[0], dtype="int32", values=large, note="large integers"))
    return (*known, *others)


def _window(rank: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> dict[str, PyValue]:
    return {
        "strides": [stride] * rank,
        "padding": [padding] * (2 * rank),
        "dilation": [dilation] * rank,
    }


def _uneven(rank: int) -> dict[str, PyValue]:
    """Returns attributes with different strides and paddings on each axis, and different paddings
    at its ends.
    """
    return {
        "strides": [1, 2, 1][:rank] if rank > 1 else [2],
        "padding": [[1, 0, 1][:rank], [0, 1, 0][:rank]][0] + [2, 1, 0][:rank],
        "dilation": [1] * rank,
    }


def _convolutions(rank: int) -> Iterator[Sample]:
    data, three = SPATIAL[rank], (3,) * rank
    padded = Sample(data, shapes.kernel(*three), _window(rank, padding=1))
    narrow = (3, 2, 1)[:rank] if rank > 1 else (2,)
    for sample in (
        padded,
        Sample(data, shapes.kernel(*three), _window(rank, stride=2, padding=1)),
        Sample(data, shapes.kernel(*(1,) * rank), _window(rank)),
        Sample(data, shapes.kernel(*three), _window(rank, padding=2, dilation=2)),
        Sample(data, shapes.kernel(*three), _uneven(rank)),
        Sample(data, shapes.kernel(*narrow), _window(rank)),
        Sample(data, shapes.kernel(*three, groups=2), {**_window(rank, padding=1), "groups": 2}),
        Sample(data, shapes.kernel(*three, groups=4), {**_window(rank, padding=1), "groups": 4}),
        Sample((1, 1, *data[2:]), shapes.kernel(*three), _window(rank), note="one channel"),
    ):
        yield replace(sample, constants=True)
    yield padded
    yield replace(padded, special=True, constants=True, note="special values")


def _transposed_convolutions(rank: int) -> Iterator[Sample]:
    data, three = SPATIAL[rank], (3,) * rank
    plain: dict[str, PyValue] = {"output_padding": [0] * rank}
    kernel = shapes.transposed_kernel(*three)
    padded: dict[str, PyValue] = {**plain, **_window(rank, padding=1)}
    for sample in (
        Sample(data, kernel, padded),
        Sample(data, kernel, {**_window(rank, 2, 1), "output_padding": [1] * rank}),
        Sample(data, kernel, {**plain, **_window(rank, 2, 0)}),
        Sample(data, kernel, {**plain, **_window(rank, padding=1, dilation=2)}),
        Sample(data, kernel, {**plain, **_uneven(rank)}),
        Sample(data, shapes.transposed_kernel(*three, outputs=3), {**padded, "groups": 2}),
    ):
        yield replace(sample, constants=True)


def _pools(rank: int, **more: PyValue) -> Iterator[Sample]:
    data, two, three = SPATIAL[rank], [2] * rank, [3] * rank
    for attributes in (
        {"pool_size": two, **_window(rank, 2)},
        {"pool_size": two, **_window(rank, 2, 1)},
        {"pool_size": two, **_window(rank, 1, 0, 2)},
        {"pool_size": three, **_uneven(rank)},
        {"pool_size": two, **_window(rank, 2), "ceil_mode": True},
        {"pool_size": three, **_window(rank, 2, 1), "ceil_mode": True},
        *([{"pool_size": three, **_window(rank, 1, 1), **more}] if more else []),
    ):
        yield Sample(data, attributes=attributes)
    negative = {"pool_size": three, **_window(rank, 1, 1)}
    yield Sample(data, attributes=negative, values=(-3.0, -0.2), note="negative values")
    yield Sample(data, attributes=negative, special=True, note="special values")


def _pools_with_places(rank: int) -> Iterator[Sample]:
    finite = [sample for sample in _pools(rank) if not sample.special]
    yield from finite
    yield replace(finite[0], attributes={**finite[0].attributes, "column_major": True})
    yield replace(finite[0], dtype="int32", note="equal values")


def _unary(values: Range | None = None, **attributes: PyValue) -> Sequence[Sample]:
    plain = Sample(IMAGE, attributes=attributes, values=values)
    every = (IMAGE, ROWS, VECTOR, (), (2, 1, 3, 1, 2), (1, 1), LARGE)
    return [
        *(replace(plain, data=data) for data in every),
        replace(plain, data=(0, 8), note="empty"),
        replace(plain, data=(4, 16), special=True, note="special values"),
    ]


def _binary(dtype: str = "float32", values: Range | None = None) -> Sequence[Sample]:
    base = Sample(IMAGE, shapes.same, dtype=dtype, values=values)
    column = replace(base, rest=shapes.channel_column)
    made = [
        base,
        replace(base, data=ROWS),
        replace(base, data=LARGE),
        replace(base, data=()),
        column,
        replace(column, constants=True),
        replace(base, rest=shapes.last),
        replace(base, rest=shapes.crossed),
        replace(base, data=(4, 4), rest=shapes.last, note="a row, not a column"),
        replace(base, data=(3, 1), rest=shapes.fixed((3, 8)), note="the first is stretched"),
        replace(base, data=(), rest=shapes.fixed(ROWS), note="the first is stretched"),
        replace(base, data=(1, 1), rest=shapes.scalar),
        replace(base, data=ROWS, rest=shapes.one, constants=True),
        replace(base, rest=shapes.scalar, constants=True),
        replace(base, constants=True),
        replace(base, first_constant=True),
        replace(base, data=(0, 8), note="empty"),
    ]
    if dtype == "float32":
        made.append(replace(base, data=(6, 16), special=True, note="special values"))
    return made


def _products(rest: Rest) -> Iterator[Sample]:
    for data in (ROWS, SEQUENCE):
        yield Sample(data, rest, constants=True)
    yield Sample(ROWS, rest)
    yield Sample((1, 8), rest, constants=True, note="one row")
    yield Sample((3, 1), rest, constants=True, note="inner size 1")
    yield Sample((3, 8), shapes.square, constants=True, note="square weight")
    yield Sample((2, 2, 3, 8), rest)
    yield Sample((2, LONG), rest, dtype="float16", values=(0.5, 1.0), note="long sums")
    yield Sample(ROWS, rest, special=True, constants=True, note="special values")


def _stacks() -> Iterator[Sample]:
    """Yields batched matmuls, with each way of broadcasting and transposing an operand."""
    yield Sample(SEQUENCE, shapes.fixed((8, 6)), note="shared right-hand side")
    yield Sample((5, 8), shapes.fixed((2, 8, 6)), note="shared left-hand side")
    yield Sample((2, 1, 5, 8), shapes.fixed((3, 8, 6)), note="both are stretched")
    flags = {"transpose_a": True}, {"transpose_b": True}, {"transpose_a": True, "transpose_b": True}
    for each in flags:
        a, b = (8, 5) if "transpose_a" in each else (5, 8), (6, 8)
        b = b if "transpose_b" in each else (8, 6)
        for lead, other in (((), ()), ((2,), (2,))):
            yield Sample((*lead, *a), shapes.fixed((*other, *b)), dict(each))
        yield Sample((4, 4), shapes.same, dict(each), note="square")


def _weighted(rest: Rest, *data: Shape, **attributes: PyValue) -> Sequence[Sample]:
    made = [Sample(one, rest, attributes) for one in data]
    return [*(replace(sample, constants=True) for sample in made), made[0]]


def _axis(sample: Sample, axis: int, rest: Rest) -> Sample:
    return replace(sample, rest=rest, attributes={"axis": axis})


def _reductions() -> Iterator[Sample]:
    kinds: list[dict[str, PyValue]] = [
        {"axis": [1], "keepdims": False},
        {"axis": [1], "keepdims": True},
        {"axis": [2, 3], "keepdims": True},
        {"axis": [0, 2], "keepdims": False},
        {"axis": [-1], "keepdims": False},
        {"axis": [0, 1, 2, 3], "keepdims": False},
    ]
    for attributes in kinds:
        yield Sample(IMAGE, attributes=attributes)
    one: dict[str, PyValue] = {"axis": [1], "keepdims": False}
    yield Sample((3, 1, 4), attributes=one, note="axis of size 1")
    yield Sample((3, 16, 4), attributes=one, values=(-3.0, -0.2), note="negative values")
    yield Sample((4, 16), attributes=one, special=True, note="special values")


def _long_sums() -> Iterator[Sample]:
    attributes: dict[str, PyValue] = {"axis": [1], "keepdims": False}
    for dtype, values in (("float16", (0.5, 1.0)), ("float32", (0.5, 1.0))):
        yield Sample((2, LONG), attributes=attributes, dtype=dtype, values=values, note="long sums")


def _normalised(**attributes: PyValue) -> Iterator[Sample]:
    for data in (IMAGE, ROWS, VECTOR, (3, 1)):
        yield Sample(data, attributes=attributes)
    yield Sample(ROWS, attributes=attributes, values=(80.0, 120.0), note="large values")
    yield Sample((4, 4), attributes={**attributes, "axis": 0})
    yield Sample(IMAGE, attributes={**attributes, "axis": 1})


def _arg_reductions() -> Iterator[Sample]:
    for attributes in (
        {"axis": [1], "keepdims": False},
        {"axis": [-1], "keepdims": True},
        {"axis": [1], "keepdims": False, "select_last_index": True},
    ):
        yield Sample((3, 16), attributes=attributes, dtype="int32", note="equal values")
        yield Sample(IMAGE, attributes=attributes)


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum")
_REDUCTIONS = ("sum", "mean", "prod", "max", "min")
_ALSO_INTEGER = frozenset(
    {*_COMPARISONS, *_ARITHMETIC, *_REDUCTIONS, "negative", "abs", "nn.relu", "transpose"}
    | {"concatenate", "reshape", "nn.dense", "nn.matmul"}
)
_LARGE_INTEGERS = frozenset({*_COMPARISONS, "add", "subtract", "maximum", "sum", "max", "min"})

_UNIT = (-0.9, 0.9)
_DOMAINS: Mapping[str, Range | None] = {
    **dict.fromkeys(
        ("negative", "abs", "sign", "exp", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "atan",
         "sinh", "cosh", "asinh", "softsign", "ceil", "floor", "round", "isnan", "isinf", "nn.relu")
    ),
    **dict.fromkeys(("log", "log1p", "sqrt", "rsqrt"), POSITIVE),
    **dict.fromkeys(("asin", "acos", "atanh"), _UNIT),
    "acosh": (1.1, 3.0),
}  # fmt: skip

_SAMPLES: Mapping[str, Sequence[Sample]] = {
    **{name: _unary(values) for name, values in _DOMAINS.items()},
    **{name: _binary() for name in (*_ARITHMETIC, *_COMPARISONS)},
    **{name: _binary(values=POSITIVE) for name in ("divide", "power", "mod", "floor_mod")},
    **{f"logical_{name}": _binary("bool") for name in ("and", "or", "xor")},
    **{f"bitwise_{name}": _binary("int32") for name in ("and", "or", "xor")},
    **{f"{side}_shift": _binary("uint32", (0, 7)) for side in ("left", "right")},
    "logical_not": [Sample(IMAGE, dtype="bool")],
    "bitwise_not": [Sample(IMAGE, dtype="int32")],
    "nn.leaky_relu": [*_unary(), *_unary(alpha=0.3)],
    "clip": [*_unary(a_min=-0.5, a_max=0.75), *_unary(a_min=0.0, a_max=6.0)],
    **{f"nn.conv{rank}d": list(_convolutions(rank)) for rank in SPATIAL},
    **{f"nn.conv{rank}d_transpose": list(_transposed_convolutions(rank)) for rank in SPATIAL},
    **{f"nn.max_pool{rank}d": list(_pools(rank)) for rank in SPATIAL},
    **{f"nn.avg_pool{rank}d": list(_pools(rank, count_include_pad=True)) for rank in SPATIAL},
    **{
        f"nn.global_{kind}_pool{rank}d": [
            Sample(SPATIAL[rank]),
            Sample(SPATIAL[rank], values=(-3.0, -0.2), note="negative values"),
            Sample((1, 1, *SPATIAL[rank][2:]), note="one channel"),
        ]
        for kind in ("max", "avg")
        for rank in SPATIAL
    },
    **{name: list(_reductions()) for name in ("prod", "max", "min")},
    **{name: [*_reductions(), *_long_sums()] for name in ("sum", "mean")},
    **{name: list(_arg_reductions()) for name in ("argmax", "argmin")},
    "nn.dense": list(_products(shapes.units)),
    "nn.matmul": [*_products(shapes.columns), *_stacks()],
    "nn.bias_add": [
        *_weighted(shapes.channel, IMAGE, ROWS, (4, 4)),
        _axis(Sample(IMAGE, constants=True), -1, shapes.last),
        _axis(Sample((4, 4), constants=True), 0, shapes.first_axis),
    ],
    "nn.prelu": [
        *_weighted(shapes.channel_column, IMAGE, ROWS),
        *_weighted(shapes.last, IMAGE),
        *_weighted(shapes.one, IMAGE),
    ],
    "nn.layer_norm": [
        *_weighted(shapes.last_twice, SEQUENCE, ROWS),
        *_weighted(shapes.last_twice, ROWS, epsilon=0.1),
        *_weighted(shapes.last_two_twice, SEQUENCE, axis=1),
    ],
    "nn.batch_norm": [
        replace(sample, ranges=dict.fromkeys(range(1, 5), POSITIVE))
        for sample in (
            *_weighted(shapes.four_channels, IMAGE, ROWS),
            Sample(IMAGE, shapes.four_channels, {"epsilon": 0.1}, constants=True),
            Sample(IMAGE, shapes.four_last, {"axis": -1}, constants=True),
        )
    ],
    "nn.lrn": [
        Sample(IMAGE, attributes={"size": 3, "alpha": 0.01}),
        Sample(IMAGE, attributes={"size": 5, "alpha": 0.5, "beta": 0.5, "bias": 2.0}),
        Sample(IMAGE, attributes={"size": 3, "alpha": 0.5, "axis": 2}),
    ],
    **{name: list(_normalised(axis=-1)) for name in ("nn.softmax", "nn.log_softmax")},
    "where": [
        *(Sample(data, shapes.twice, dtypes={0: "bool"}) for data in (IMAGE, ROWS)),
        Sample((3, 1), shapes.fixed((3, 8), (8,)), dtypes={0: "bool"}),
        Sample(ROWS, shapes.fixed((), ROWS), dtypes={0: "bool"}, constants=True),
    ],
    "cast": [
        *(Sample(ROWS, attributes={"dtype": f32}, dtype=dtype) for dtype in ("float64", "int32")),
        Sample(ROWS, attributes={"dtype": f64}),
    ],
    "concatenate": [
        Sample(IMAGE, shapes.same, {"axis": 1}),
        Sample(IMAGE, shapes.fixed((2, 1, 9, 8), (2, 3, 9, 8)), {"axis": 1}),
        Sample(IMAGE, shapes.same, {"axis": -1}),
        Sample(ROWS, shapes.twice, {"axis": 0}, constants=True),
        Sample((2, 0), shapes.fixed((2, 3)), {"axis": 1}, note="one is empty"),
    ],
    "split": [
        Sample(IMAGE, attributes={"axis": 1, "sections": [1, 3]}),
        Sample(ROWS, attributes={"axis": 0, "sections": [1, 1, 1]}),
    ],
    "transpose": [
        Sample(IMAGE, attributes={"axes": [0, 2, 3, 1]}),
        Sample(IMAGE, attributes={"axes": [3, 0, 1, 2]}),
        Sample(ROWS, attributes={"axes": [1, 0]}),
        Sample((4, 4), attributes={"axes": [1, 0]}, note="square"),
        Sample((1, 5), attributes={"axes": [1, 0]}, note="axis of size 1"),
    ],
    "reshape": [
        Sample(IMAGE, attributes={"newshape": [2, -1]}),
        Sample(IMAGE, attributes={"newshape": [8, 9, 8]}),
        Sample((1, 1), attributes={"newshape": []}),
    ],
    "expand_dims": [Sample(ROWS, attributes={"axis": axis}) for axis in ([1], [0, 3])],
    "squeeze": [
        Sample((3, 1, 8), attributes={"axis": [1]}),
        Sample((1, 1, 8), attributes={"axis": [0]}),
    ],
    "broadcast_to": [
        Sample((1, 8), attributes={"shape": [3, 8]}),
        Sample((3, 1), attributes={"shape": [2, 3, 3]}),
    ],
    "nn.pad": [
        Sample(ROWS, attributes={"pad_width": [1, 0, 2, 3], **more})
        for more in ({}, {"pad_value": 2.5}, {"pad_mode": "edge"}, {"pad_mode": "reflect"})
    ] + [Sample(ROWS, attributes={"pad_width": [0, 2, -1, 1]})],
    "strided_slice": [
        Sample(ROWS, attributes={"begin": [0, 2], "end": [3, 7], "strides": [1, 2]}),
        Sample(ROWS, attributes={"begin": [2, 7], "end": [-1, 1], "strides": [-1, -3]}),
    ],
    **{
        f"nn.max_pool{rank}d_with_argmax": list(_pools_with_places(rank))
        for rank in SPATIAL
    },
    **{f"qnn.conv{rank}d": list(quantised_convolutions(_convolutions(rank))) for rank in SPATIAL},
    **{
        f"qnn.conv{rank}d_transpose": list(quantised_convolutions(_transposed_convolutions(rank)))
        for rank in SPATIAL
    },
    **{
        f"qnn.avg_pool{rank}d": list(quantised_pools(_pools(rank, count_include_pad=True)))
        for rank in SPATIAL
    },
    **{
        f"qnn.global_avg_pool{rank}d": list(quantised_pools([Sample(SPATIAL[rank])]))
        for rank in SPATIAL
    },
    "fft": [
        Sample((3, 60, 2)),
        Sample((3, 60, 2), attributes={"inverse": True}),
        Sample((3, 60, 1), attributes={"real": True}),
        Sample((3, 61, 2), attributes={"real": True, "inverse": True}),
    ],
    **QUANTISED_SAMPLES,
    **SAMPLES_WITH_PLACES,
    **VISION_SAMPLES,
    **RECURRENT_SAMPLES,
}  # fmt: skip
"""Samples by Relay name; the first sample of an op is its plainest."""
