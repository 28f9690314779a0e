"""Small instances of Relay ops: what a backend's rules are tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.dialects.builtin import f32

from byoc_mlir.dialects.relay.base import PyValue

Shape: TypeAlias = tuple[int, ...]
Rest: TypeAlias = Callable[[Shape], Sequence[Shape]]

IMAGE, ROWS, SEQUENCE, VECTOR = (2, 4, 9, 8), (3, 8), (2, 5, 8), (7,)
SPATIAL: Mapping[int, Shape] = {1: (2, 4, 9), 2: IMAGE, 3: (1, 4, 6, 5, 7)}


def _alone(data: Shape) -> Sequence[Shape]:
    return ()


@dataclass(frozen=True)
class Sample:
    """One op: the shape of its first operand, from which the others' follow, and its properties."""

    data: Shape
    rest: Rest = _alone
    attributes: Mapping[str, PyValue] = field(default_factory=dict[str, PyValue])
    dtype: str = "float32"
    constants: bool = False
    """Whether the operands behind the first are constants."""
    values: tuple[float, float] | None = None
    """The range of all values; a normal distribution without one."""
    first_dtype: str = ""
    """The element type of the first operand, where it has one of its own."""

    @property
    def label(self) -> str:
        """What tells it from other samples of the op."""
        shapes = ", ".join(str(list(shape)) for shape in (self.data, *self.rest(self.data)))
        attributes = "".join(f" {name}={value}" for name, value in self.attributes.items())
        constants = " constant" if self.constants else ""
        return f"{self.dtype} {shapes}{constants}{attributes}"


def samples_of(name: str) -> Sequence[Sample]:
    """Instances of a Relay op; its first one also in other element types. Empty: none is known."""
    known = tuple(_SAMPLES.get(name, ()))
    if not known or known[0].dtype != "float32":
        return known
    dtypes = ("float64", "int32") if name in _ALSO_INTEGER else ("float64",)
    return (*known, *(replace(known[0], dtype=dtype) for dtype in dtypes))


def _same(data: Shape) -> Sequence[Shape]:
    return (data,)


def _twice(data: Shape) -> Sequence[Shape]:
    return data, data


def _scalar(data: Shape) -> Sequence[Shape]:
    return ((),)


def _channel(data: Shape) -> Sequence[Shape]:
    return ((data[min(1, len(data) - 1)],),)


def _channel_column(data: Shape) -> Sequence[Shape]:
    return ((data[1], *(1 for _ in data[2:])),)


def _four_channels(data: Shape) -> Sequence[Shape]:
    return ((data[1],),) * 4


def _last_twice(data: Shape) -> Sequence[Shape]:
    return ((data[-1],),) * 2


def _units(data: Shape) -> Sequence[Shape]:
    return ((6, data[-1]),)


def _columns(data: Shape) -> Sequence[Shape]:
    return ((*data[:-2], data[-1], 6),)


def _kernel(rank: int, size: int, groups: int = 1) -> Rest:
    return lambda data: ((8, data[1] // groups, *(size for _ in range(rank))),)


def _transposed_kernel(rank: int, size: int) -> Rest:
    return lambda data: ((data[1], 6, *(size for _ in range(rank))),)


def _window(rank: int, stride: int = 1, padding: int = 0, dilation: int = 1) -> dict[str, PyValue]:
    return {
        "strides": [stride] * rank,
        "padding": [padding] * (2 * rank),
        "dilation": [dilation] * rank,
    }


def _convolutions(rank: int) -> Iterator[Sample]:
    data = SPATIAL[rank]
    padded = Sample(data, _kernel(rank, 3), _window(rank, padding=1))
    for sample in (
        padded,
        Sample(data, _kernel(rank, 3), _window(rank, stride=2, padding=1)),
        Sample(data, _kernel(rank, 1), _window(rank)),
        Sample(data, _kernel(rank, 3), _window(rank, padding=2, dilation=2)),
        Sample(data, _kernel(rank, 3, groups=2), {**_window(rank, padding=1), "groups": 2}),
        Sample(data, _kernel(rank, 3, groups=4), {**_window(rank, padding=1), "groups": 4}),
    ):
        yield replace(sample, constants=True)
    yield padded


def _transposed_convolutions(rank: int) -> Iterator[Sample]:
    for stride in (1, 2):
        attributes = {**_window(rank, stride, padding=1), "output_padding": [stride - 1] * rank}
        yield Sample(SPATIAL[rank], _transposed_kernel(rank, 3), attributes, constants=True)


def _pools(rank: int) -> Iterator[Sample]:
    for window in (_window(rank, 2), _window(rank, 2, 1), _window(rank, 1, 0, 2)):
        yield Sample(SPATIAL[rank], attributes={"pool_size": [2] * rank, **window})
    ceil: dict[str, PyValue] = {"pool_size": [2] * rank, **_window(rank, 2), "ceil_mode": True}
    yield Sample(SPATIAL[rank], attributes=ceil)


def _unary(values: tuple[float, float] | None = None, **attributes: PyValue) -> Sequence[Sample]:
    return [Sample(data, attributes=attributes, values=values) for data in (IMAGE, ROWS, VECTOR)]


def _binary(dtype: str = "float32", values: tuple[float, float] | None = None) -> Sequence[Sample]:
    base = Sample(IMAGE, _same, dtype=dtype, values=values)
    column = replace(base, rest=_channel_column)
    rests = (base, replace(base, data=ROWS), column, replace(column, constants=True))
    return [*rests, replace(base, rest=_scalar, constants=True), replace(base, constants=True)]


def _weighted(rest: Rest, *shapes: Shape, **attributes: PyValue) -> Sequence[Sample]:
    made = [Sample(data, rest, attributes) for data in shapes]
    return [*(replace(sample, constants=True) for sample in made), made[0]]


def _reductions() -> Sequence[Sample]:
    kinds: list[dict[str, PyValue]] = [
        {"axis": [1], "keepdims": False},
        {"axis": [2, 3], "keepdims": True},
        {"axis": [0, 1, 2, 3], "keepdims": False},
    ]
    return [Sample(IMAGE, attributes=attributes) for attributes in kinds]


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
_ARITHMETIC = ("add", "subtract", "multiply", "maximum", "minimum")
_ALSO_INTEGER = frozenset({*_COMPARISONS, *_ARITHMETIC, "negative", "abs", "nn.relu"})

_POSITIVE, _UNIT = (0.2, 3.0), (-0.9, 0.9)
_DOMAINS: Mapping[str, tuple[float, float] | None] = {
    **dict.fromkeys(
        ("negative", "abs", "sign", "exp", "tanh", "sigmoid", "erf", "sin", "cos", "tan", "atan",
         "sinh", "cosh", "asinh", "ceil", "floor", "round", "isnan", "isinf", "nn.relu",
         "nn.leaky_relu")
    ),
    **dict.fromkeys(("log", "sqrt", "rsqrt"), _POSITIVE),
    **dict.fromkeys(("asin", "acos", "atanh"), _UNIT),
    "acosh": (1.1, 3.0),
}  # fmt: skip

_SAMPLES: Mapping[str, Sequence[Sample]] = {
    **{name: _unary(values) for name, values in _DOMAINS.items()},
    **{name: _binary() for name in (*_ARITHMETIC, *_COMPARISONS)},
    **{name: _binary(values=_POSITIVE) for name in ("divide", "power", "mod", "floor_mod")},
    **{f"logical_{name}": _binary("bool") for name in ("and", "or", "xor")},
    **{f"bitwise_{name}": _binary("int32") for name in ("and", "or", "xor")},
    "logical_not": [Sample(IMAGE, dtype="bool")],
    "bitwise_not": [Sample(IMAGE, dtype="int32")],
    "clip": _unary(a_min=-0.5, a_max=0.75),
    **{f"nn.conv{rank}d": list(_convolutions(rank)) for rank in SPATIAL},
    **{f"nn.conv{rank}d_transpose": list(_transposed_convolutions(rank)) for rank in SPATIAL},
    **{f"nn.{kind}_pool{rank}d": list(_pools(rank)) for kind in ("max", "avg") for rank in SPATIAL},
    **{
        f"nn.global_{kind}_pool{rank}d": [Sample(SPATIAL[rank])]
        for kind in ("max", "avg")
        for rank in SPATIAL
    },
    **{name: _reductions() for name in ("sum", "mean", "prod", "max", "min")},
    "nn.dense": _weighted(_units, ROWS, SEQUENCE),
    "nn.matmul": _weighted(_columns, ROWS, SEQUENCE),
    "nn.bias_add": _weighted(_channel, IMAGE, ROWS),
    "nn.prelu": _weighted(_channel_column, IMAGE, ROWS),
    "nn.layer_norm": _weighted(_last_twice, SEQUENCE, ROWS),
    "nn.batch_norm": [
        replace(sample, values=_POSITIVE) for sample in _weighted(_four_channels, IMAGE, ROWS)
    ],
    "nn.lrn": [Sample(IMAGE, attributes={"size": 3, "alpha": 0.01})],
    **{name: _unary(axis=-1) for name in ("nn.softmax", "nn.log_softmax")},
    "where": [Sample(data, _twice, first_dtype="bool") for data in (IMAGE, ROWS)],
    "cast": [
        Sample(ROWS, attributes={"dtype": f32}, dtype=dtype) for dtype in ("float64", "int32")
    ],
    "concatenate": [
        Sample(IMAGE, _same, {"axis": 1}),
        Sample(ROWS, _twice, {"axis": 0}, constants=True),
    ],
    "transpose": [
        Sample(IMAGE, attributes={"axes": [0, 2, 3, 1]}),
        Sample(ROWS, attributes={"axes": [1, 0]}),
    ],
    "reshape": [Sample(IMAGE, attributes={"newshape": [2, -1]})],
    "expand_dims": [Sample(ROWS, attributes={"axis": [1]})],
    "squeeze": [Sample((3, 1, 8), attributes={"axis": [1]})],
    "broadcast_to": [Sample((1, 8), attributes={"shape": [3, 8]})],
    "nn.pad": [Sample(ROWS, attributes={"pad_width": [1, 0, 2, 3]})],
}
