"""Transforms of signals and ops that scatter at constant positions, against independent results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
import pytest
from helpers.models import model_of, node, node_model
from hypothesis import given, settings
from hypothesis import strategies as st

import byoc_mlir

Array = np.ndarray[Any, np.dtype[Any]]


def _rng() -> np.random.Generator:
    return np.random.default_rng(2)


def _normal(*shape: int) -> Array:
    return _rng().normal(size=shape).astype(np.float32)


def _model(
    op_type: str, data: Sequence[Array], known: Sequence[Array | None], opset: int, **how: Any
) -> Any:
    """Returns a node whose inputs are `data`, then the constants `known`."""
    return node_model(op_type, data, known, opset=opset, **how)[0]


def _run(
    op_type: str, data: Sequence[Array], known: Sequence[Array | None], opset: int, **how: Any
) -> Array:
    model = _model(op_type, data, known, opset, **how)
    return next(
        iter(byoc_mlir.compile(model, targets=(), fallback="allow").run(list(data)).values())
    )


def _check(
    op_type: str, data: Sequence[Array], known: Sequence[Array | None], opset: int, **how: Any
) -> None:
    session = onnxruntime.InferenceSession(
        _model(op_type, data, known, opset, **how).SerializeToString()
    )
    feeds = {f"x{number}": array for number, array in enumerate(data)}
    expected = np.asarray(session.run(None, feeds)[0])
    found = _run(op_type, data, known, opset, **how)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def _complex(parts: Array) -> Array:
    return parts[..., 0] if parts.shape[-1] == 1 else parts[..., 0] + 1j * parts[..., 1]


@pytest.mark.parametrize("length", [None, 9, 16])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("onesided", [0, 1])
def test_dft_is_that_of_numpy(length: int | None, parts: int, onesided: int) -> None:
    data = _normal(2, 12, 3, parts)
    known = [None if length is None else np.array(length), np.array(1)]
    found = _complex(_run("DFT", [data], known, 20, onesided=onesided))
    expected = np.fft.fft(_complex(data), length, axis=1)
    if onesided:
        expected = expected[:, : expected.shape[1] // 2 + 1]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [10, 11, 12])
def test_inverse_of_one_half_is_real(length: int) -> None:
    data = _normal(3, 6, 2)
    known = [np.array(length), np.array(1)]
    found = _run("DFT", [data], known, 20, inverse=1, onesided=1)
    expected = np.fft.irfft(_complex(data), length, axis=1)
    np.testing.assert_allclose(found[..., 0], expected, rtol=1e-4, atol=1e-5)


_LENGTHS = st.one_of(
    st.integers(1, 300), st.sampled_from([1009, 1024, 2310, 4096, 4099, 6561, 10007, 1 << 15])
)


def _parts(numbers: Array) -> Array:
    return np.stack([np.real(numbers), np.imag(numbers)], -1)


def _wide(data: Array) -> Array:
    return _complex(data.astype(np.float64))


def _assert_accurate(found: Array, expected: Array) -> None:
    """Compares with a transform in f64; the error is a few roundings of the largest result."""
    error = np.abs(found - expected).max()
    assert error <= 16 * np.finfo(np.float32).eps * max(np.abs(expected).max(), 1e-30)


@settings(max_examples=24, deadline=None)
@given(_LENGTHS, st.integers(1, 3), st.integers(0, 1), st.sampled_from([1, 2]))
def test_transforms_of_any_length(length: int, rows: int, inverse: int, parts: int) -> None:
    data = _normal(rows, length, parts)
    found = _run("DFT", [data], [None, np.array(1)], 20, inverse=inverse)
    transform = np.fft.ifft if inverse else np.fft.fft
    _assert_accurate(_complex(found), transform(_wide(data), axis=1))


@settings(max_examples=16, deadline=None)
@given(_LENGTHS, st.sampled_from([0, 1, -2, -3]))
def test_halves_of_the_frequencies(length: int, axis: int) -> None:
    data = np.moveaxis(_normal(2, length, 1), 1, axis if axis >= 0 else axis % 3)
    known = [None, np.array(axis)]
    found = _complex(_run("DFT", [data], known, 20, onesided=1))
    expected = np.fft.rfft(data[..., 0].astype(np.float64), axis=axis % 3)
    _assert_accurate(found, expected)
    half = _parts(expected).astype(np.float32)
    size = np.array(data.shape[axis % 3])
    back = _run("DFT", [half], [size, np.array(axis)], 20, inverse=1, onesided=1)
    wanted = np.fft.irfft(_wide(half), int(size), axis=axis % 3)
    _assert_accurate(back[..., 0], wanted)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_transforms_of_other_types(dtype: type) -> None:
    data = _normal(2, 60, 2).astype(dtype)
    found = _run("DFT", [data], [None, np.array(1)], 20)
    assert found.dtype == dtype
    expected = np.fft.fft(_wide(data), axis=1)
    np.testing.assert_allclose(_wide(found), expected, rtol=1e-2, atol=np.finfo(dtype).eps * 64)


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 130), st.integers(1, 40), st.sampled_from([1, 2]))
def test_short_transforms_with_windows(length: int, step: int, parts: int) -> None:
    data, window = _normal(2, 300, parts), np.hanning(length + 2)[1:-1].astype(np.float32)
    found = _run("STFT", [data], [np.array(step), window], 17, onesided=2 - parts)
    frames = np.lib.stride_tricks.sliding_window_view(_wide(data), length, axis=1)[:, ::step]
    expected = np.fft.fft(frames * window, axis=2)
    half = length // 2 + 1 if parts == 1 else length
    _assert_accurate(_complex(found), expected[..., :half])


def test_transforms_of_nothing() -> None:
    empty = _normal(2, 0, 2)
    assert _run("DFT", [empty], [None, np.array(1)], 20).shape == (2, 0, 2)
    one = _normal(2, 1, 2)
    assert _run("DFT", [one], [None, np.array(1)], 20, inverse=1, onesided=1).shape == (2, 0, 1)


def test_stft() -> None:
    window = np.hanning(16).astype(np.float32)
    _check("STFT", [_normal(2, 100, 1)], [np.array(5), window, np.array(16)], 17)


def test_col2im() -> None:
    shapes = [np.array([7, 8]), np.array([3, 2])]
    how = {"strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [1, 2]}
    _check("Col2Im", [_normal(2, 3 * 6, 4 * 7)], shapes, 18, **how)


def test_max_unpool_takes_what_max_pool_gave() -> None:
    data = _rng().permutation(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).astype(np.float32)
    tiles = data.reshape(2, 3, 4, 2, 4, 2).transpose(0, 1, 2, 4, 3, 5).reshape(2, 3, 4, 4, 4)
    pooled = tiles.max(-1)
    places = np.argsort(data.reshape(-1))[pooled.astype(np.int64)]
    _check("MaxUnpool", [pooled, places], [], 11, kernel_shape=[2, 2], strides=[2, 2])


def test_tile_and_compress() -> None:
    _check("Tile", [_normal(2, 1, 3)], [np.array([2, 3, 1])], 13)
    _check("Compress", [_normal(3, 4)], [np.array([False, True, True])], 11, axis=0)
    _check("Compress", [_normal(3, 4)], [np.array([False, True, True])], 11)


@pytest.mark.parametrize(
    "value", [np.array(2**63 - 2), np.array([-3]), np.array([np.nan], np.float32)]
)
def test_pad_with_a_value_of_run_time(value: Array) -> None:
    data, pads = np.array([[5, 6]], value.dtype), np.array([0, 2, 1, -1])
    wanted = np.pad(data[:, :1], [(0, 1), (2, 0)], constant_values=value.reshape(-1)[0])
    _check("Pad", [data], [pads, value], 18)
    feeds = {"x": data, "value": value}
    model = model_of([node("Pad", "x pads value")], feeds, {"pads": pads}, opset=18)
    found = byoc_mlir.compile(model).run(feeds)["y"]
    np.testing.assert_array_equal(found, wanted)
