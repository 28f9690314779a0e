"""Shapes of the operands behind an op's first one, from the shape of that."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.testing.conformance.samples import Rest, Shape


def same(data: Shape) -> Sequence[Shape]:
    """One of the same shape."""
    return (data,)


def twice(data: Shape) -> Sequence[Shape]:
    """Two of the same shape."""
    return data, data


def scalar(data: Shape) -> Sequence[Shape]:
    """A scalar."""
    return ((),)


def one(data: Shape) -> Sequence[Shape]:
    """One element."""
    return ((1,),)


def last(data: Shape) -> Sequence[Shape]:
    """A row."""
    return (data[-1:],)


def channel(data: Shape) -> Sequence[Shape]:
    """A number for each channel."""
    return ((data[min(1, len(data) - 1)],),)


def first_axis(data: Shape) -> Sequence[Shape]:
    """A number for each place along the first axis."""
    return (data[:1],)


def channel_column(data: Shape) -> Sequence[Shape]:
    """A number for each channel, with axes of size 1 behind it."""
    return ((data[1], *(1 for _ in data[2:])),)


def crossed(data: Shape) -> Sequence[Shape]:
    """Of higher rank, and broadcast itself along the last axis: both sides are stretched."""
    return ((2, *data[:-1], 1),)


def four_channels(data: Shape) -> Sequence[Shape]:
    """Four times a number for each channel."""
    return ((data[1],),) * 4


def four_last(data: Shape) -> Sequence[Shape]:
    """Four rows."""
    return (data[-1:],) * 4


def last_two_twice(data: Shape) -> Sequence[Shape]:
    """Two of the shape of the last two axes."""
    return (data[-2:],) * 2


def last_twice(data: Shape) -> Sequence[Shape]:
    """Two rows."""
    return (data[-1:],) * 2


def units(data: Shape) -> Sequence[Shape]:
    """The weight of a dense layer."""
    return ((6, data[-1]),)


def square(data: Shape) -> Sequence[Shape]:
    """A square matrix."""
    return ((data[-1], data[-1]),)


def columns(data: Shape) -> Sequence[Shape]:
    """Matrices to multiply with from the right."""
    return ((*data[:-2], data[-1], 6),)


def kernel(*sizes: int, groups: int = 1) -> Rest:
    """The weight of a convolution of eight outputs."""
    return lambda data: ((8, data[1] // groups, *sizes),)


def transposed_kernel(*sizes: int, outputs: int = 6) -> Rest:
    """The weight of a transposed convolution."""
    return lambda data: ((data[1], outputs, *sizes),)


def fixed(*shapes: Shape) -> Rest:
    """These shapes, whatever the first operand's is."""
    return lambda data: shapes
