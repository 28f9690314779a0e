"""Shapes of an op's further operands, as functions of the first operand's shape."""

from __future__ import annotations

from collections.abc import Sequence

from byoc_mlir.testing.samples.relay_ops.sample import Rest, Shape


def same(data: Shape) -> Sequence[Shape]:
    """Returns one shape, equal to the first operand's."""
    return (data,)


def twice(data: Shape) -> Sequence[Shape]:
    """Returns two shapes, equal to the first operand's."""
    return data, data


def scalar(data: Shape) -> Sequence[Shape]:
    """Returns the shape of a scalar."""
    return ((),)


def one(data: Shape) -> Sequence[Shape]:
    """Returns the shape `[1]`."""
    return ((1,),)


def last(data: Shape) -> Sequence[Shape]:
    """Returns the shape of a row along the last axis."""
    return (data[-1:],)


def channel(data: Shape) -> Sequence[Shape]:
    """Returns the shape of a vector with an element for each channel."""
    return ((data[min(1, len(data) - 1)],),)


def first_axis(data: Shape) -> Sequence[Shape]:
    """Returns the shape of a vector with an element for each index of the first axis."""
    return (data[:1],)


def channel_column(data: Shape) -> Sequence[Shape]:
    """Returns the shape `[C, 1, …]`: an element for each channel, with axes of size 1 after it."""
    return ((data[1], *(1 for _ in data[2:])),)


def crossed(data: Shape) -> Sequence[Shape]:
    """Returns a shape of higher rank whose last axis is 1, so that both operands are broadcast."""
    return ((2, *data[:-1], 1),)


def four_channels(data: Shape) -> Sequence[Shape]:
    """Returns four shapes of vectors with an element for each channel."""
    return ((data[1],),) * 4


def four_last(data: Shape) -> Sequence[Shape]:
    """Returns four shapes of rows along the last axis."""
    return (data[-1:],) * 4


def last_two_twice(data: Shape) -> Sequence[Shape]:
    """Returns the shape of the last two axes, twice."""
    return (data[-2:],) * 2


def last_twice(data: Shape) -> Sequence[Shape]:
    """Returns two shapes of rows along the last axis."""
    return (data[-1:],) * 2


def units(data: Shape) -> Sequence[Shape]:
    """Returns the weight shape of a dense layer with 6 features."""
    return ((6, data[-1]),)


def square(data: Shape) -> Sequence[Shape]:
    """Returns the shape of a square matrix whose size is the last axis."""
    return ((data[-1], data[-1]),)


def columns(data: Shape) -> Sequence[Shape]:
    """Returns the shape of operand B of a matmul with 6 columns."""
    return ((*data[:-2], data[-1], 6),)


def kernel(*sizes: int, groups: int = 1) -> Rest:
    """Returns the function for the weight shape of a convolution with 8 output channels."""
    return lambda data: ((8, data[1] // groups, *sizes),)


def transposed_kernel(*sizes: int, outputs: int = 6) -> Rest:
    """Returns the function for the weight shape of a transposed convolution."""
    return lambda data: ((data[1], outputs, *sizes),)


def fixed(*shapes: Shape) -> Rest:
    """Returns the function for these shapes, for any first operand."""
    return lambda data: shapes
