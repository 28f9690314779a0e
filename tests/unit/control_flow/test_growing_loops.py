"""Loops with a computed end and a growing cache, as in scripted decoders."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from control_models import Array, f32
from helpers.models import parsed

import byoc_mlir
from byoc_mlir.errors import ExecutionError
from byoc_mlir.runtime import Executable
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

_ENDS = {
    "or": """small = Less (t, bound) far = GreaterOrEqual (j, twelve) stops = Or (small, far)
        goes = Not (stops)""",
    "branch": """far = GreaterOrEqual (j, five)
        stops = If (far) <then_branch = a () => (bool yes) { yes = Constant <value = bool {1}> () },
                          else_branch = b () => (bool low) { low = Less (t, bound) }>
        goes = Not (stops)""",
}

_STEP = """kept = Concat <axis = -2> (cache, x)
    image = MatMul (memory, weight) wide = Relu (image)
    scores = MatMul (x, across) p = Softmax (scores) seen = MatMul (p, wide)
    all = ReduceSum <keepdims = 1> (kept, axes) some = Sub (seen, all) x2 = Tanh (some)
    s = ReduceMean <keepdims = 0> (x2) t = Reshape (s, scalar)"""

_BODY = """body (int64 i, bool c, int64 n, float[b, 1, 8] x, float[b, l, 8] cache)
    => (bool goes, int64 j, float[b, 1, 8] x2, float[b, m, 8] kept, float[b, 1, 8] row) {
    j = Add (n, one) %s row = Identity (x2) %s }"""

_CONSTANTS: dict[str, Array] = {
    "one": np.array(1),
    "five": np.array(5),
    "twelve": np.array(12),
    "zero": np.array(0),
    "true": np.array(True),
    "weight": f32(8, 8, seed=1),
    "axes": np.array([1]),
    "scalar": np.array([], np.int64),
    "none": np.array([0, 8]),
}

_BEFORE = """batch = Shape <end = 1> (start) empty = Concat <axis = 0> (batch, none)
    cache0 = ConstantOfShape (empty) across = Transpose <perm = [0, 2, 1]> (memory)"""


def _model(end: str = _ENDS["or"], trip: int | None = None) -> onnx.ModelProto:
    constants = {**_CONSTANTS, "bound": np.array(-0.1, np.float32)}
    if trip is not None:
        constants["trip"] = np.array(trip)
    count = "" if trip is None else "trip"
    return parsed(
        "(float[b, 1, 8] start, float[b, 7, 8] memory)"
        " => (float[b, 1, 8] y, float[b, l2, 8] cache, float[r, b, 1, 8] rows)",
        f"""{_BEFORE} last, y, cache, rows = Loop ({count}, true, zero, start, cache0)
            <body = {_BODY % (_STEP, end)}>""",
        constants,
    )


def _feeds(batch: int, seed: int) -> dict[str, Array]:
    return {"start": f32(batch, 1, 8, seed=seed), "memory": f32(batch, 7, 8, seed=seed + 100)}


def _check(model: onnx.ModelProto, feeds: list[dict[str, Array]]) -> Executable:
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    for given in feeds:
        assert_agrees(executable.run(given), run_onnxruntime(model, given))
    return executable


@pytest.mark.values
@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("trip", [None, 1 << 62, (1 << 63) - 1, 9])
def test_one_program_does_for_all_lengths(end: str, trip: int | None) -> None:
    model = _model(_ENDS[end], trip)
    executable = _check(model, [_feeds(2, seed) for seed in range(6)] + [_feeds(5, 7)])
    report = executable.report()
    (loop,) = [row for row in report if row.op_type == "Loop"]
    assert loop.placement == "host"
    assert "cache grows" in loop.reason
    assert all("one program" in str(variant) for variant in report.variants)


def test_loops_of_other_lengths_end_at_other_places() -> None:
    """Checks that lengths differ, since the test above would miss a loop that runs once."""
    model = _model()
    lengths = {run_onnxruntime(model, _feeds(2, seed))["rows"].shape[0] for seed in range(6)}
    assert len(lengths) > 2


def test_products_of_what_is_the_same_are_computed_before_the_loop() -> None:
    executable = _check(_model(), [_feeds(2, 1)])
    products = {row.node.count("/body/") for row in executable.report() if row.op_type == "MatMul"}
    outside = [
        row for row in executable.report() if row.op_type == "MatMul" and "/" not in row.node
    ]
    assert products == {0, 1}
    assert len(outside) == 1


def test_a_loop_without_an_iteration() -> None:
    """Checks that loop-carried values keep their initial values; the rows have no shape."""
    model = parsed(
        "(bool go, float[2, 1, 8] start, float[2, 7, 8] memory)"
        " => (float[2, 1, 8] y, float[2, l2, 8] cache, float[r, 2, 1, 8] rows)",
        f"""{_BEFORE} last, y, cache, rows = Loop (, go, zero, start, cache0)
            <body = {_BODY % (_STEP, _ENDS["or"])}>""",
        {**_CONSTANTS, "bound": np.array(-0.1, np.float32)},
    )
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    feeds, none = ({"go": np.array(go), **_feeds(2, 1)} for go in (True, False))
    assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))
    with pytest.raises(ExecutionError, match=r"no iteration of .* ran, .* shape of 'rows'"):
        executable.run(none)
    del model.graph.output[2], model.graph.node[-1].output[3]
    del model.graph.node[-1].attribute[0].g.output[4]
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    for given in (none, feeds):
        assert_agrees(executable.run(given), run_onnxruntime(model, given))


def test_what_else_changes_its_shape_compiles_the_body_again() -> None:
    """Checks `t`, which a `Tile` doubles by a number that is known only at run time."""
    model = parsed(
        "(float[1, 4] start) => (float[1, a] y, float[b, 4] cache)",
        """y, cache = Loop (, true, start, start) <body = body (int64 i, bool c, float[1, k] t,
             float[l, 4] kept) => (bool goes, float[1, n] t2, float[m, 4] kept2) {
             t2 = Tile (t, twice) kept2 = Concat <axis = 0> (kept, start)
             size = Size (t2) goes = Less (size, many) }>""",
        {**_CONSTANTS, "twice": np.array([1, 2]), "many": np.array(50)},
    )
    _check(model, [{"start": f32(1, 4, seed=seed)} for seed in range(2)])


def test_two_loops_and_a_constant_that_is_given() -> None:
    text = f"""{_BEFORE} l1, y1, cache1, r1 = Loop (, true, zero, start, cache0)
            <body = {_BODY % (_STEP, _ENDS["or"])}>
        l2, y2, cache2, r2 = Loop (five, true, zero, start, cache0)
            <body = {_BODY % (_STEP, _ENDS["branch"])}>
        both = Concat <axis = 1> (cache1, cache2)"""
    model = parsed(
        "(float[b, 1, 8] start, float[b, 7, 8] memory) => (float[b, n, 8] both, int64 five)",
        text,
        {**_CONSTANTS, "bound": np.array(-0.1, np.float32)},
    )
    _check(model, [_feeds(2, seed) for seed in range(3)])


def test_a_loop_that_goes_on_with_what_another_one_gives() -> None:
    grown = """body (int64 i, bool c, float[1] x, float[l] cache)
        => (bool goes, float[1] x2, float[m] kept) {
        kept = Concat <axis = 0> (cache, x) x2 = Add (x, start)
        s = ReduceSum <keepdims = 0> (kept) goes = Less (s, bound) }"""
    model = parsed(
        "(float[1] start, float bound) => (float[1] y2, float[n] cache2)",
        f"""y, cache = Loop (, true, start, start) <body = {grown}>
        y2, cache2 = Loop (five, , y, cache) <body = {grown}>""",
        {name: _CONSTANTS[name] for name in ("true", "five")},
    )
    _check(
        model,
        [{"start": np.ones(1, np.float32), "bound": np.array(n, np.float32)} for n in (4, 30)],
    )


def test_one_program_does_for_all_numbers_of_iterations() -> None:
    model = parsed(
        "(float[n] x, int64 count) => (float[l] y)",
        """y = Loop (count, , x) <body = body (int64 i, bool c, float[m] s)
            => (bool goes, float[k] kept) {
            kept = Concat <axis = 0> (s, x) goes = Identity (c) }>""",
    )
    x = f32(3)
    executable = _check(model, [{"x": x, "count": np.array(count)} for count in (2, 0, 9, 1)])
    assert len(executable.report().variants) == 1


def test_profiles() -> None:
    model = _model()
    executable = byoc_mlir.compile(model, targets=(), threads=1, profile=True)
    feeds = _feeds(2, 1)
    executable.run(feeds)
    nodes = [node for row in executable.profile(feeds, runs=1) for node in row.nodes]
    assert any("MatMul" in node for node in nodes)


def test_the_part_before_the_loop_is_compiled_ahead() -> None:
    executable = byoc_mlir.compile(_model(), targets=(), threads=1)
    executable.warmup({"start": (2, 1, 8), "memory": (2, 7, 8)})
    assert "MatMul" in {row.op_type for row in executable.report()}
    assert_agrees(executable.run(_feeds(2, 1)), run_onnxruntime(_model(), _feeds(2, 1)))
