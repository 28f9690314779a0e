"""Samples of ops on quantised tensors.

No scale, and no quotient of two scales, is a power of two: so ties, which backends may round
differently, are rare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.testing.samples.relay_ops.sample import Range, Rest, Sample, Shape
from byoc_mlir.testing.samples.relay_ops.shapes import fixed

_BYTES: Range = (0, 255)
_WEIGHTS: Range = (-128, 127)
_COARSE: Range = (0.047, 0.047)
_FINE: Range = (0.0213, 0.0213)
_ZERO: Range = (0, 0)


def _symmetric(sample: Sample, *zero_points: int) -> Sample:
    """Returns the sample on int8 with zero points of 0, for devices that support no others."""
    zeros = dict.fromkeys(zero_points, _ZERO)
    types = {index: "int8" if kind == "uint8" else kind for index, kind in sample.dtypes.items()}
    ranges = {**sample.ranges, **zeros}
    if sample.dtype == "uint8":
        sample = replace(sample, dtype="int8", values=_WEIGHTS)
    return replace(sample, dtypes=types, ranges=ranges, note="symmetric")


def _scales(size: int, first: float) -> Range:
    """Returns scales of which neighbours differ, as an exact range."""
    scales = [first * (1 + place % 4) for place in range(size)]
    return scales, scales


def _and_scalars(rest: Rest, count: int) -> Rest:
    """Appends `count` scalar operands to the shapes of `rest`."""
    return lambda data: (*rest(data), *((),) * count)


def quantised_convolutions(plain: Iterable[Sample]) -> Iterator[Sample]:
    """Yields quantised convolutions, in the forms of the float convolutions."""
    forms = [sample for sample in plain if not sample.special]
    for sample in forms:
        yield replace(
            sample,
            rest=_and_scalars(sample.rest, 2),
            dtype="uint8",
            values=_BYTES,
            dtypes={1: "int8", 3: "int8"},
            ranges={1: _WEIGHTS, 3: (0, 0)},
        )
    signed = replace(forms[0], rest=_and_scalars(forms[0].rest, 2), dtype="int8", values=_WEIGHTS)
    yield replace(signed, note="zero points of the weight")
    yield replace(signed, dtypes={}, ranges={2: _ZERO, 3: _ZERO}, note="symmetric")


def quantised_pools(plain: Iterable[Sample]) -> Iterator[Sample]:
    """Yields quantised average pools, in the forms of the float ones."""
    forms = [sample for sample in plain if not sample.special and sample.values is None]
    for sample in forms:
        yield from _rescaled(sample)
    yield _symmetric(next(_rescaled(forms[0])), 2, 4)


def _rescaled(sample: Sample) -> Iterator[Sample]:
    between = replace(
        sample,
        rest=_and_scalars(sample.rest, 4),
        dtype="uint8",
        values=_BYTES,
        dtypes={1: "float32", 3: "float32"},
        ranges={1: _COARSE, 3: _COARSE},
    )
    yield between
    yield replace(between, ranges={1: _COARSE, 3: _FINE}, note="values beyond the range")


def _affine(dtypes: Mapping[int, str], values: Range | None) -> Iterator[Sample]:
    """Yields samples of (de)quantisation with parameters for the tensor, for each index of an axis,
    and for each block.
    """
    data: Shape = (3, 8, 5)
    plain = Sample(
        data,
        fixed((), ()),
        dtype=dtypes[0],
        values=values,
        dtypes=dtypes,
        ranges={1: _COARSE, 2: (3, 3)},
    )
    yield replace(plain, constants=True)
    yield plain
    if dtypes[2] == "int8":
        yield _symmetric(replace(plain, constants=True), 2)
    zeros: Range = (-3 if dtypes[2] == "int8" else 0, 9)
    for axis in (1, -1):
        size = data[axis]
        yield replace(
            plain,
            rest=fixed((size,), (size,)),
            attributes={"axis": axis},
            ranges={1: _scales(size, 0.031), 2: zeros},
            constants=True,
        )
    blocks: dict[str, PyValue] = {"axis": 1, "block_size": 3}
    yield replace(
        plain,
        rest=fixed((3, 3, 5), (3, 3, 5)),
        attributes=blocks,
        ranges={1: _scales(5, 0.031), 2: zeros},
        constants=True,
    )


def _requantised() -> Iterator[Sample]:
    dtypes = {1: "float32", 3: "float32", 4: "uint8"}
    scales: Mapping[int, Range] = {1: (0.00031, 0.00031), 2: (0, 0), 3: _COARSE, 4: (7, 7)}
    plain = Sample(
        (2, 4, 9),
        fixed((), (), (), ()),
        dtype="int32",
        values=(-2000, 2000),
        dtypes=dtypes,
        ranges=scales,
    )
    yield replace(plain, constants=True)
    yield plain
    for axis in (1, -1):
        size = plain.data[axis]
        yield replace(
            plain,
            rest=fixed((size,), (), (), ()),
            attributes={"axis": axis},
            ranges={**scales, 1: _scales(size, 0.00031)},
            constants=True,
        )
    yield replace(plain, dtypes={**dtypes, 4: "int8"}, note="signed results")
    yield _symmetric(replace(plain, constants=True), 4)
    yield replace(plain, values=(-9, 9), note="small values")


def _products(shape: Shape, weight: Shape, *zeros: Shape, **attributes: PyValue) -> Sample:
    return Sample(
        shape,
        fixed(weight, *(zeros or ((), ()))),
        attributes,
        dtype="uint8",
        values=_BYTES,
        dtypes={1: "int8", 3: "int8"},
        ranges={1: _WEIGHTS},
    )


def _with_symmetric_weights(sample: Sample) -> Sample:
    """Returns the sample with a zero point of 0 for the weights, as is usual."""
    return replace(sample, ranges={**sample.ranges, 3: _ZERO}, note="symmetric weights")


def _dense() -> Iterator[Sample]:
    for data in ((3, 8), (2, 5, 8)):
        yield replace(_products(data, (6, 8)), constants=True)
        yield _with_symmetric_weights(replace(_products(data, (6, 8)), constants=True))
    yield _products((3, 8), (6, 8))
    yield _symmetric(replace(_products((3, 8), (6, 8)), constants=True), 2, 3)
    yield replace(_products((3, 8), (6, 8), (), (6,)), constants=True)
    yield _products((3, 8), (8, 8))
    yield replace(_products((2, 700), (6, 700)), constants=True, note="long sums")


def _matmul() -> Iterator[Sample]:
    plain = replace(_products((3, 8), (8, 6)), constants=True)
    yield plain
    yield _with_symmetric_weights(plain)
    yield _symmetric(plain, 2, 3)
    yield _products((3, 8), (8, 6))
    yield _products((2, 5, 8), (2, 8, 6))
    yield _products((2, 5, 8), (8, 6))
    yield replace(_products((5, 8), (8, 6), (5, 1), (1, 6)), note="a zero point for each row")
    yield _products((8, 5), (8, 6), transpose_a=True)
    yield _products((5, 8), (6, 8), transpose_b=True)


def _binary() -> Iterator[Sample]:
    dtypes: Mapping[int, str] = {2: "float32", 4: "float32", 6: "float32"}
    ranges: Mapping[int, Range] = {2: _COARSE, 4: _FINE, 6: (0.083, 0.083)}
    plain = Sample(
        (2, 4, 9, 8),
        _and_scalars(fixed((2, 4, 9, 8)), 6),
        dtype="uint8",
        values=_BYTES,
        dtypes=dtypes,
        ranges=ranges,
    )
    yield plain
    yield replace(plain, rest=_and_scalars(fixed((4, 1, 1)), 6), constants=True)
    yield replace(plain, rest=_and_scalars(fixed((8,)), 6))
    yield replace(plain, dtype="int8", values=_WEIGHTS)
    yield _symmetric(plain, 3, 5, 7)


QUANTISED_SAMPLES: Mapping[str, Sequence[Sample]] = {
    "qnn.quantize": [
        *_affine({0: "float32", 1: "float32", 2: "uint8"}, None),
        *_affine({0: "float32", 1: "float32", 2: "int8"}, (-30.0, 30.0)),
    ],
    "qnn.dequantize": [
        *_affine({0: "uint8", 1: "float32", 2: "uint8"}, _BYTES),
        *_affine({0: "int8", 1: "float32", 2: "int8"}, _WEIGHTS),
        *_affine({0: "int32", 1: "float32", 2: "int32"}, (-2000, 2000)),
    ],
    "qnn.requantize": list(_requantised()),
    "qnn.dense": list(_dense()),
    "qnn.matmul": list(_matmul()),
    "qnn.add": list(_binary()),
    "qnn.multiply": list(_binary()),
    "qnn.lookup": [
        Sample((3, 50), fixed((256,)), dtype=dtype, values=values, constants=constants)
        for dtype, values in (("uint8", _BYTES), ("int8", _WEIGHTS))
        for constants in (True, False)
    ],
}
"""Samples by Relay name; the first sample of an op is its plainest."""
