"""Math ops: the f32 expansions against f64 over dense sweeps, the others against numpy."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from jit_helpers import (
    MLIR_TYPES,
    Native,
    assert_same,
    elementwise,
    lowered,
    optimised_assembly,
    ulp_error,
)

from byoc_mlir.kernels.f32_functions import FUNCTIONS
from byoc_mlir.lowering.to_llvm.expand_math import ExpandMath

_F32 = np.dtype(np.float32)
_SIZE = 1 << 18


def _vectorised(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: np.asarray(np.frompyfunc(function, 1, 1)(x)).astype(np.float64)


_MAX_ULP = {
    "exp": 1.1,
    "log": 0.9,
    "log1p": 1.6,
    "tanh": 5.3,
    "erf": 6.0,
    "sinh": 2.2,
    "cosh": 1.6,
    "sin": 1.6,
    "cos": 1.5,
    "tan": 3.2,
    "asinh": 3.5,
    "acosh": 3.5,
    "atanh": 3.5,
}
_NUMPY_NAMES = {
    "acos": "arccos",
    "acosh": "arccosh",
    "asin": "arcsin",
    "asinh": "arcsinh",
    "atan": "arctan",
    "atanh": "arctanh",
}
_ORACLES = {name: getattr(np, _NUMPY_NAMES.get(name, name), None) for name in _MAX_ULP} | {
    "erf": _vectorised(math.erf)
}


def _sweep() -> np.ndarray:
    """Returns special values, every exponent of both signs, and the ranges in which the functions
    bend.
    """
    edges = [1e-45, 1e-38, 0.5, 1.0, 2.0, 8.0, 88.72, 88.73, 127.9, 128.0, 1024.0, 3.4e38]
    turns = [math.pi / 2, math.pi, 1.6e9 * math.pi, -87.4, -103.9, -104.5, -149.0, -150.0]
    values = [0.0, np.inf, np.nan, *edges, *turns]
    special = np.array([*values, *(-value for value in values)], np.float32)
    rng = np.random.default_rng(11)
    spread = np.linspace(0, 2**32 - 1, _SIZE // 4, dtype=np.uint64).astype(np.uint32)
    ranges = ((-10, 10), (-110, 110), (0.5, 2))
    near = [rng.uniform(low, high, _SIZE // 4).astype(np.float32) for low, high in ranges]
    return np.concatenate([special, spread.view(np.float32), *near])[:_SIZE]


@pytest.fixture(scope="module")
def expanded() -> Native:
    text = "".join(
        elementwise(f"my_{name}", f"%r = math.{name} %a : f32", [_F32], _F32, _SIZE)
        for name in _MAX_ULP
    )
    return Native(text, ExpandMath())


@pytest.mark.parametrize("name", _MAX_ULP)
def test_expansion_is_accurate(expanded: Native, name: str) -> None:
    values, oracle = _sweep(), _ORACLES[name]
    assert oracle is not None
    out = np.zeros_like(values)
    expanded.call(f"my_{name}", values, out)
    with np.errstate(all="ignore"):
        exact = oracle(values.astype(np.float64))
    assert ulp_error(out, exact) <= _MAX_ULP[name]


@pytest.mark.parametrize(("name", "least"), [("tanh", 9.09), ("erf", 3.925)])
def test_what_is_held_at_one_is_one(expanded: Native, name: str, least: float) -> None:
    """Checks exactness: with one step below 1, gelu of a large negative value would be large
    instead of zero.
    """
    values = np.geomspace(least, 3e38, _SIZE).astype(np.float32)
    values[-1] = np.inf
    for sign in (1, -1):
        out = np.zeros_like(values)
        expanded.call(f"my_{name}", sign * values, out)
        assert (out == sign).all()


def test_every_expansion_has_an_accuracy_test() -> None:
    assert {op.name.removeprefix("math.") for op in FUNCTIONS} == set(_MAX_ULP)


def test_exp_of_what_is_at_most_zero() -> None:
    values = _sweep()
    values = np.concatenate(
        [values[~(values > 0)], np.linspace(-106, -86, 1 << 16, dtype=np.float32)]
    )
    body = "%r = math.exp %a {at_most_zero} : f32"
    text = elementwise("f", body, [_F32], _F32, values.size)
    out = np.zeros_like(values)
    Native(text, ExpandMath()).call("f", values, out)
    with np.errstate(all="ignore"):
        exact = np.exp(values.astype(np.float64))
    assert ulp_error(out, exact) <= _MAX_ULP["exp"]


def test_expansions_are_vectorised_and_call_nothing(tmp_path: Path) -> None:
    for name in ("exp", "tanh", "erf", "log"):
        text = elementwise("f", f"%r = math.{name} %a : f32", [_F32], _F32, 4096)
        assembly = optimised_assembly(lowered(text, ExpandMath()), tmp_path)
        assert "fmul contract <" in assembly, name
        assert not [line for line in assembly.splitlines() if "call" in line and "f(" in line], name


def test_roundings_of_f16_are_vectorised(tmp_path: Path) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    oracles = {"floor": np.floor, "ceil": np.ceil, "roundeven": np.rint, "trunc": np.trunc}
    for name, oracle in oracles.items():
        text = elementwise("f", f"%r = math.{name} %a : f16", [values.dtype], values.dtype, 1 << 16)
        assembly = optimised_assembly(lowered(text), tmp_path)
        assert re.search(rf"call <\d+ x float> @llvm.{name}", assembly), name
        out = np.zeros_like(values)
        Native(text).call("f", values, out)
        with np.errstate(invalid="ignore"):
            assert_same(out, oracle(values), name)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_half_precision_goes_through_f32(dtype: type) -> None:
    values = np.linspace(-4, 4, 256).astype(dtype)
    type_ = MLIR_TYPES[values.dtype]
    text = elementwise("f", f"%r = math.tanh %a : {type_}", [values.dtype], values.dtype, 256)
    for passes in ((ExpandMath(),), ()):
        out = np.zeros_like(values)
        Native(text, *passes).call("f", values, out)
        wanted = np.tanh(values.astype(np.float64)).astype(dtype)
        error = np.abs(out.astype(np.float64) - wanted.astype(np.float64))
        assert error.max() <= np.spacing(np.float16(1.0)) * (8 if dtype is not np.float16 else 1)


_LIBRARY = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
def test_library_functions(dtype: type) -> None:
    type_ = MLIR_TYPES[np.dtype(dtype)]
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5, -2.5, 1e-30]
    values = np.append(np.array(special, dtype), np.linspace(-3, 3, 101, dtype=dtype))
    native = Native(
        "".join(
            elementwise(
                f"my_{name}",
                f"%r = math.{name} %a : {type_}",
                [values.dtype] * 1,
                values.dtype,
                112,
            )
            for name in _LIBRARY
        )
    )
    for name in _LIBRARY:
        out = np.zeros_like(values)
        native.call(f"my_{name}", values, out)
        with np.errstate(all="ignore"):
            wanted = getattr(np, _NUMPY_NAMES.get(name, name))(values)
        np.testing.assert_allclose(out, wanted, rtol=4 * np.finfo(dtype).eps, err_msg=name)


def test_erf_and_rounding() -> None:
    values = np.append(
        np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, np.inf, np.nan, -0.0], np.float32),
        np.linspace(-5, 5, 55, dtype=np.float32),
    )
    size = len(values)
    names = ("erf", "round", "roundeven", "absf", "rsqrt")
    native = Native(
        "".join(
            elementwise(f"my_{name}", f"%r = math.{name} %a : f32", [_F32], _F32, size)
            for name in names
        )
    )
    out = {name: np.zeros_like(values) for name in names}
    with np.errstate(all="ignore"):
        wanted = {
            "erf": _vectorised(math.erf)(values).astype(np.float32),
            "round": np.copysign(np.floor(np.abs(values.astype(np.float64)) + 0.5), values),
            "roundeven": np.rint(values),
            "absf": np.abs(values),
            "rsqrt": 1 / np.sqrt(values),
        }
    for name in names:
        native.call(f"my_{name}", values, out[name])
        np.testing.assert_allclose(out[name], wanted[name], rtol=3e-7, err_msg=name)


def test_two_operands() -> None:
    x, y = np.random.default_rng(5).uniform(-3, 3, (2, 64)).astype(np.float32)
    native = Native(
        elementwise("my_pow", "%r = math.powf %a, %b : f32", [_F32] * 2, _F32, 64)
        + elementwise("my_copysign", "%r = math.copysign %a, %b : f32", [_F32] * 2, _F32, 64)
    )
    out = np.zeros_like(x)
    native.call("my_pow", np.abs(x), y, out)
    np.testing.assert_allclose(out, np.power(np.abs(x), y), rtol=4e-7)
    native.call("my_copysign", x, y, out)
    np.testing.assert_array_equal(out, np.copysign(x, y))


def test_absolute_integers() -> None:
    values = np.array([0, 1, -1, 5, -5, 2**31 - 1, -(2**31), 1 << 20], np.int32)
    text = elementwise("my_absi", "%r = math.absi %a : i32", [values.dtype], values.dtype, 8)
    out = np.zeros_like(values)
    Native(text).call("my_absi", values, out)
    assert_same(out, np.abs(values), "absi")


def test_expansion_leaves_what_it_has_no_formula_for() -> None:
    text = elementwise("f", "%r = math.exp %a : f64", [np.dtype("f8")], np.dtype("f8"), 4)
    module = lowered(text, ExpandMath())
    assert [op.name for op in module.walk() if "exp" in op.name] == ["llvm.intr.exp"]


def test_docs_state_the_errors() -> None:
    text = (Path(__file__).parents[3] / "docs" / "dev-notes" / "host-compiler.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", text, re.MULTILINE)
    assert {name: float(error) for name, error in rows} == _MAX_ULP
