"""The arith ops that the compiler emits, executed and compared with Python and numpy."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from jit_helpers import MLIR_TYPES, Native, assert_same, elementwise

BF16 = np.dtype(ml_dtypes.bfloat16)
_FLOATS = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BF16]
_INTEGERS = [np.dtype(np.int8), np.dtype(np.int32), np.dtype(np.int64)]


def _integers(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    info = np.iinfo(dtype)
    edges = np.array([0, 1, -1, 2, -2, 7, -7, info.max, info.min, info.max - 1], dtype)
    lhs, rhs = np.meshgrid(edges, edges)
    random = np.random.default_rng(3).integers(info.min, info.max, (2, 100), dtype)
    return np.append(lhs.ravel(), random[0]), np.append(rhs.ravel(), random[1])


def _floats(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    edges = np.array([0.0, -0.0, 1.0, -1.5, 3.25, 1e-3, np.inf, -np.inf, np.nan, 6e4], dtype)
    lhs, rhs = np.meshgrid(edges, edges)
    random = np.random.default_rng(4).normal(size=(2, 100)).astype(dtype)
    return np.append(lhs.ravel(), random[0]), np.append(rhs.ravel(), random[1])


def _unsigned(x: np.ndarray) -> np.ndarray:
    return x.view(np.dtype(f"u{x.dtype.name}"))


def _by_python(function: Callable[[int, int], int]) -> Callable[..., np.ndarray]:
    """Returns the oracle of an op by Python's unbounded integers, wrapped to the type."""

    def apply(lhs: np.ndarray, rhs: np.ndarray, dtype: np.dtype) -> np.ndarray:
        bits = dtype.itemsize * 8
        values = [
            (function(a, b) + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
            for a, b in zip(lhs.tolist(), rhs.tolist(), strict=True)
        ]
        return np.array(values, dtype)

    return apply


def _truncating(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_SIGNED = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
    "minsi": min,
    "maxsi": max,
}
_SIGNED_DIVISIONS = {
    "divsi": _truncating,
    "remsi": lambda a, b: a - b * _truncating(a, b),
    "floordivsi": lambda a, b: a // b,
}
_UNSIGNED = {"minui": min, "maxui": max}
_UNSIGNED_DIVISIONS = {
    "divui": lambda a, b: a // b,
    "remui": lambda a, b: a % b,
}


@pytest.mark.parametrize("dtype", _INTEGERS, ids=lambda dtype: dtype.name)
def test_integer_binary(dtype: np.dtype) -> None:
    lhs, rhs = _integers(dtype)
    type_ = MLIR_TYPES[dtype]
    can_divide = (rhs != 0) & ~((lhs == np.iinfo(dtype).min) & (rhs == -1))
    safe_rhs = np.where(can_divide, rhs, 1).astype(dtype)
    cases = [
        *((name, function, lhs, rhs, False) for name, function in _SIGNED.items()),
        *((name, function, lhs, safe_rhs, False) for name, function in _SIGNED_DIVISIONS.items()),
        *((name, function, lhs, rhs, True) for name, function in _UNSIGNED.items()),
        *((name, function, lhs, safe_rhs, True) for name, function in _UNSIGNED_DIVISIONS.items()),
    ]
    functions = [
        elementwise(name, f"%r = arith.{name} %a, %b : {type_}", [dtype, dtype], dtype, len(lhs))
        for name, *_ in cases
    ]
    native = Native("".join(functions))
    for name, function, left, right, is_unsigned in cases:
        out = np.zeros_like(left)
        native.call(name, left, right, out)
        a, b = (_unsigned(left), _unsigned(right)) if is_unsigned else (left, right)
        np.testing.assert_array_equal(out, _by_python(function)(a, b, dtype), err_msg=name)


def test_shifts() -> None:
    dtype = np.dtype(np.int32)
    lhs = np.repeat(np.array([0, 1, -1, 12345, -98765, 2**31 - 1, -(2**31)], dtype), 32)
    rhs = np.tile(np.arange(32, dtype=dtype), 7)
    names = ("shli", "shrui", "shrsi")
    native = Native(
        "".join(
            elementwise(name, f"%r = arith.{name} %a, %b : i32", [dtype] * 2, dtype, len(lhs))
            for name in names
        )
    )
    expected = (
        np.left_shift(lhs, rhs),
        np.right_shift(lhs.view(np.uint32), rhs.view(np.uint32)).view(np.int32),
        np.right_shift(lhs, rhs),
    )
    for name, want in zip(names, expected, strict=True):
        out = np.zeros_like(lhs)
        native.call(name, lhs, rhs, out)
        np.testing.assert_array_equal(out, want, err_msg=name)


@pytest.mark.parametrize("dtype", [np.dtype(np.int8), np.dtype(np.int64)], ids=["i8", "i64"])
def test_cmpi(dtype: np.dtype) -> None:
    lhs, rhs = _integers(dtype)
    compare = {"eq": np.equal, "ne": np.not_equal}
    compare |= {"slt": np.less, "sle": np.less_equal}
    compare |= {"sgt": np.greater, "sge": np.greater_equal}
    compare |= {"ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal}
    native = Native(
        "".join(
            elementwise(
                name,
                f"%r = arith.cmpi {name}, %a, %b : {MLIR_TYPES[dtype]}",
                [dtype] * 2,
                np.dtype(np.bool_),
                len(lhs),
            )
            for name in compare
        )
    )
    for name, function in compare.items():
        out = np.zeros(lhs.shape, np.bool_)
        native.call(name, lhs, rhs, out)
        is_unsigned = name.startswith("u")
        a, b = (_unsigned(lhs), _unsigned(rhs)) if is_unsigned else (lhs, rhs)
        np.testing.assert_array_equal(out, function(a, b), err_msg=name)


@pytest.mark.parametrize("dtype", _FLOATS, ids=lambda dtype: dtype.name)
def test_float_binary(dtype: np.dtype) -> None:
    lhs, rhs = _floats(dtype)
    oracles = {
        "addf": np.add,
        "subf": np.subtract,
        "mulf": np.multiply,
        "divf": np.divide,
        "maximumf": np.maximum,
        "minimumf": np.minimum,
    }
    type_ = MLIR_TYPES[dtype]
    native = Native(
        "".join(
            elementwise(name, f"%r = arith.{name} %a, %b : {type_}", [dtype] * 2, dtype, len(lhs))
            for name in oracles
        )
    )
    for name, oracle in oracles.items():
        out = np.zeros_like(lhs)
        native.call(name, lhs, rhs, out)
        with np.errstate(all="ignore"):
            assert_same(out, oracle(lhs, rhs), name)


def test_extremum_against_a_constant() -> None:
    values = np.array([1.0, 3.0, -2.0, np.nan, np.inf, -np.inf, 2.0], np.float32)
    dtype = values.dtype
    native = Native(
        elementwise(
            "upper",
            "%k = arith.constant 2.0 : f32\n    %r = arith.minimumf %a, %k : f32",
            [dtype],
            dtype,
            7,
        )
        + elementwise(
            "lower",
            "%k = arith.constant 2.0 : f32\n    %r = arith.maximumf %a, %k : f32",
            [dtype],
            dtype,
            7,
        )
    )
    out = np.zeros_like(values)
    native.call("upper", values, out)
    np.testing.assert_array_equal(out, np.minimum(values, np.float32(2)))
    native.call("lower", values, out)
    np.testing.assert_array_equal(out, np.maximum(values, np.float32(2)))


@pytest.mark.parametrize("dtype", [np.dtype(np.float32), BF16], ids=lambda dtype: dtype.name)
def test_cmpf_and_select(dtype: np.dtype) -> None:
    lhs, rhs = _floats(dtype)
    a, b = lhs.astype(np.float32), rhs.astype(np.float32)
    unordered = np.isnan(a) | np.isnan(b)
    ordered = {
        "eq": a == b,
        "gt": a > b,
        "ge": a >= b,
        "lt": a < b,
        "le": a <= b,
        "ne": a != b,
    }
    expected = {f"o{name}": value & ~unordered for name, value in ordered.items()}
    expected |= {f"u{name}": value | unordered for name, value in ordered.items()}
    expected |= {"ord": ~unordered, "uno": unordered}
    expected |= {"true": np.ones_like(unordered), "false": np.zeros_like(unordered)}
    type_ = MLIR_TYPES[dtype]
    body = "%c = arith.cmpf {}, %a, %b : {}\n    %r = arith.select %c, %a, %b : {}"
    native = Native(
        "".join(
            elementwise(f"{name}_", body.format(name, type_, type_), [dtype] * 2, dtype, len(lhs))
            for name in expected
        )
    )
    for name, condition in expected.items():
        out = np.zeros_like(lhs)
        native.call(f"{name}_", lhs, rhs, out)
        assert_same(out, np.where(condition, lhs, rhs), name)


_CONVERSIONS = [
    ("extf", np.float32, np.float64),
    ("extf", np.float16, np.float32),
    ("extf", np.float16, np.float64),
    ("extf", ml_dtypes.bfloat16, np.float32),
    ("extf", ml_dtypes.bfloat16, np.float64),
    ("truncf", np.float64, np.float32),
    ("truncf", np.float32, np.float16),
    ("truncf", np.float32, ml_dtypes.bfloat16),
    ("sitofp", np.int32, np.float32),
    ("sitofp", np.int64, np.float64),
    ("sitofp", np.int8, ml_dtypes.bfloat16),
    ("sitofp", np.int8, np.float16),
    ("extsi", np.int8, np.int64),
    ("trunci", np.int64, np.int16),
]


@pytest.mark.parametrize(("name", "source", "target"), _CONVERSIONS)
def test_conversions(name: str, source: type, target: type) -> None:
    source_type, target_type = np.dtype(source), np.dtype(target)
    is_integer = source_type.kind == "i"
    values, _ = _integers(source_type) if is_integer else _floats(source_type)
    body = f"%r = arith.{name} %a : {MLIR_TYPES[source_type]} to {MLIR_TYPES[target_type]}"
    native = Native(elementwise("f", body, [source_type], target_type, len(values)))
    out = np.zeros(values.shape, target_type)
    native.call("f", values, out)
    with np.errstate(all="ignore"):
        assert_same(out, values.astype(target_type))


def test_rounding_to_bf16_is_to_nearest_even() -> None:
    bits = np.array(
        [0x3F800000, 0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF], np.uint32
    )
    values = np.append(bits.view(np.float32), np.array([-1e-40, np.nan, np.inf], np.float32))
    native = Native(
        elementwise("f", "%r = arith.truncf %a : f32 to bf16", [values.dtype], BF16, len(values))
    )
    out = np.zeros(values.shape, BF16)
    native.call("f", values, out)
    assert_same(out, values.astype(BF16))


def test_float_to_integer_truncates() -> None:
    values = np.array([0.0, 0.9, -0.9, 2.5, 1e6, 127.99], np.float32)
    body = "%r = arith.fptosi %a : f32 to i32"
    native = Native(elementwise("s", body, [values.dtype], np.dtype("i4"), 6))
    signed = np.zeros(6, np.int32)
    native.call("s", values, signed)
    np.testing.assert_array_equal(signed, values.astype(np.int32))


def test_unsigned_element_types() -> None:
    values = np.arange(256, dtype=np.uint8)
    cast = "%s = builtin.unrealized_conversion_cast %a : ui8 to i8\n    "
    native = Native(
        elementwise(
            "wide",
            cast + "%r = arith.uitofp %s : i8 to f32",
            [values.dtype],
            np.dtype(np.float32),
            256,
        )
        + elementwise(
            "extended",
            cast + "%r = arith.extui %s : i8 to i32",
            [values.dtype],
            np.dtype(np.int32),
            256,
        )
    )
    wide, extended = np.zeros(256, np.float32), np.zeros(256, np.int32)
    native.call("wide", values, wide)
    native.call("extended", values, extended)
    np.testing.assert_array_equal(wide, values.astype(np.float32))
    np.testing.assert_array_equal(extended, values.astype(np.int32))


def test_bitcasts() -> None:
    numbers, _ = _integers(np.dtype(np.int32))
    floats = np.zeros(len(numbers), np.float32)
    body = "%r = arith.bitcast %a : i32 to f32"
    native = Native(elementwise("bits", body, [numbers.dtype], floats.dtype, len(numbers)))
    native.call("bits", numbers, floats)
    np.testing.assert_array_equal(floats.view(np.int32), numbers)
