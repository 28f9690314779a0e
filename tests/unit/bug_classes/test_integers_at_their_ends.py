"""Integers of every type at their ends: compiled, folded and evaluated they are equal.

Arithmetic is compared with Python's, whose integers are unbounded.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, helper
from small_models import Array, Arrays, floats, ints, model_of, node
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model

TYPES = [np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)]
OPSET = 20


def _ends(dtype: np.dtype[Any]) -> Array:
    info = np.iinfo(dtype)
    some = {
        info.min,
        info.min + 1,
        -1,
        0,
        1,
        2,
        3,
        info.bits - 1,
        info.bits,
        info.max - 1,
        info.max,
    }
    return np.array(sorted(number for number in some if info.min <= number <= info.max), dtype)


def _quotient(lhs: int, rhs: int) -> int:
    magnitude = abs(lhs) // abs(rhs) if rhs else 0
    return magnitude if (lhs < 0) == (rhs < 0) else -magnitude


def _remainder(lhs: int, rhs: int) -> int:
    return lhs - _quotient(lhs, rhs) * rhs if rhs else 0


def _floor_remainder(lhs: int, rhs: int) -> int:
    return lhs % rhs if rhs else 0


def _power(base: int, exponent: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, 1 << 64)
    return base ** (exponent % 2) if base in (1, -1) else 0


def _shifted(direction: str, bits: int) -> Callable[[int, int], int]:
    if direction == "LEFT":
        return lambda lhs, count: lhs << count if count < bits else 0
    return lambda lhs, count: lhs >> count if count < bits else 0


Case = tuple[NodeProto, Callable[[int, int], int]]


def _arithmetic(dtype: np.dtype[Any]) -> list[Case]:
    cases: list[Case] = [
        (node("Add", "x y"), operator.add),
        (node("Sub", "x y"), operator.sub),
        (node("Mul", "x y"), operator.mul),
        (node("Div", "x y"), _quotient),
        (node("Mod", "x y"), _floor_remainder),
        (node("Mod", "x y", fmod=1), _remainder),
        (node("Max", "x y"), max),
        (node("Min", "x y"), min),
        (node("BitwiseAnd", "x y"), operator.and_),
        (node("BitwiseOr", "x y"), operator.or_),
        (node("BitwiseXor", "x y"), operator.xor),
        (node("Less", "x y"), operator.lt),
        (node("GreaterOrEqual", "x y"), operator.ge),
    ]
    if dtype in (np.int32, np.int64):
        cases.append((node("Pow", "x y"), _power))
    if dtype.kind == "u":
        bits = dtype.itemsize * 8
        cases += [
            (node("BitShift", "x y", direction=d), _shifted(d, bits)) for d in ("LEFT", "RIGHT")
        ]
    return cases


def _others(dtype: np.dtype[Any]) -> list[NodeProto]:
    """Returns nodes whose meaning the page's tables define, for more operands than the tables
    have."""
    nodes = [node(op, "x") for op in ("Abs", "Sign", "BitwiseNot", "ArgMax", "ArgMin")]
    nodes += [node("Neg", "x")] if dtype.kind == "i" else []
    nodes += [node("Clip", "m low high"), node("Where", "c m x"), node("TopK", "m three", "top at")]
    kinds = [*TYPES, np.dtype(bool), np.dtype(np.float32), np.dtype(np.float64)]
    nodes += [_cast("x", kind) for kind in kinds if kind != dtype]
    nodes += [_cast("f", dtype), _cast("d", dtype)]
    if dtype.itemsize < 4:
        return nodes
    reductions = ["Sum", "Prod", "Max", "Min", "Mean", "L1", "SumSquare"]
    nodes += [node(f"Reduce{op}", "m axis", keepdims=0) for op in reductions]
    nodes += [node("CumSum", "m last"), node("CumSum", "m last", reverse=1, exclusive=1)]
    nodes += [
        node("MatMul", "m m"),
        node("ReduceMax", "none axis"),
        node("ReduceMean", "none axis"),
    ]
    return nodes


def _cast(name: str, dtype: np.dtype[Any]) -> NodeProto:
    return node("Cast", name, to=helper.np_dtype_to_tensor_dtype(dtype))


def _feeds(dtype: np.dtype[Any]) -> dict[str, Array]:
    ends = _ends(dtype)
    matrix = np.random.default_rng(0).choice(ends, (len(ends), len(ends)))
    huge = [
        0.5,
        -0.5,
        255.5,
        -129,
        2.0**31,
        -(2.0**31),
        2.0**32,
        2.0**63,
        -(2.0**63),
        2.0**64,
        1e30,
    ]
    numbers = np.array([*huge, np.nan, np.inf, -np.inf])
    return {
        "x": ends[:, None],
        "y": ends[None],
        "m": matrix,
        "c": matrix > 1,
        "none": np.zeros((2, 0), dtype),
        "f": numbers.astype(np.float32),
        "d": numbers,
    }


def _three_ways(
    nodes: list[NodeProto], feeds: Arrays, constants: Arrays | None = None
) -> dict[str, Array]:
    """Returns the outputs, after checking that the host, folding and the evaluator agree."""
    model = model_of(nodes, feeds, constants or {}, [], OPSET)
    names = [output.name for output in model.graph.output]
    imported = import_model(model)
    evaluated = evaluate(_main(imported.module), list(feeds.values()))
    known = import_model(model_of(nodes, {}, {**feeds, **(constants or {})}, [], OPSET))
    assert {each.status for each in known.nodes} == {"folded"}
    folded = evaluate(_main(known.module), [])
    with byoc_mlir.compile(model, targets=(), threads=1) as executable:
        compiled = executable.run(feeds)
    for name, one, two in zip(names, evaluated, folded, strict=True):
        assert compiled[name].dtype == one.dtype == two.dtype, name
        np.testing.assert_array_equal(compiled[name], one, err_msg=name)
        np.testing.assert_array_equal(compiled[name], two, err_msg=name)
    return compiled


def _main(module: Any) -> FuncOp:
    (main,) = (op for op in module.walk() if isinstance(op, FuncOp))
    return main


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_elements_and_reductions(dtype: np.dtype[Any]) -> None:
    feeds, ends = _feeds(dtype), _ends(dtype)
    cases, others = _arithmetic(dtype), _others(dtype)
    constants = {
        "low": ends[1],
        "high": ends[-2],
        "three": ints(3),
        "axis": ints(1),
        "last": ints(1)[0],
    }
    nodes = [*(each for each, _ in cases), *others]
    used = {name for each in nodes for name in each.input}
    feeds = {name: array for name, array in feeds.items() if name in used}
    constants = {name: np.asarray(array) for name, array in constants.items() if name in used}
    found = _three_ways(nodes, feeds, constants)
    for each, exact in cases:
        got = found[each.output[0]]
        wanted = [[exact(lhs, rhs) for rhs in ends.tolist()] for lhs in ends.tolist()]
        wrapped = np.array(
            [[number & (1 << 64) - 1 for number in row] for row in wanted], np.uint64
        )
        np.testing.assert_array_equal(got, wrapped.astype(got.dtype), err_msg=each.op_type)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_places(dtype: type[np.integer[Any]]) -> None:
    """Checks indices from one end of the axis to the other; indices beyond are clamped at run time
    only.
    """
    nodes = [
        node("Gather", "x i", axis=1),
        node("GatherElements", "x e", axis=1),
        node("GatherND", "x n"),
        node("ScatterElements", "x e u", axis=1, reduction="add"),
        node("ScatterND", "x n v"),
        node("OneHot", "o depth values"),
    ]
    ends = np.array([-3, -1, 0, 2], dtype)
    places = np.array([ends, ends[::-1]])
    feeds = {
        "x": floats(1, 2, 3, 4, 5, 6).reshape(2, 3),
        "i": ends,
        "e": places[:, :3],
        "n": np.array([[-2, -3], [1, 2], [0, 0]], np.int64),
        "u": np.ones((2, 3), np.float32),
        "v": floats(7, 8, 9),
        "o": np.array([np.iinfo(dtype).min, -3, -4, 0, 2, 3, np.iinfo(dtype).max], dtype),
    }
    found = _three_ways(nodes, feeds, {"depth": ints(3)[0], "values": floats(0, 1)})
    np.testing.assert_array_equal(found["Gather_0"], [[1, 3, 1, 3], [4, 6, 4, 6]])
    assert found["OneHot_5"].sum(1).tolist() == [0, 1, 0, 1, 1, 0, 0]
