"""Slices and ranges in bodies that begin at a counter, as exporters write them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from control_models import Array, expected, f32
from helpers.models import parsed
from helpers.programs import is_symbolic

import byoc_mlir
from byoc_mlir.errors import InvalidModelError, UnsupportedModelError
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime


def number(value: int, dtype: type[np.generic] = np.int64) -> Array:
    return np.array(value, dtype)


_WHOLE = {"one": number(1), "axis": np.array([0]), "float_one": np.array(1, np.float32)}


def rows(signature: str, body: str, trip: str = "n = Gather (sizes, zero)") -> onnx.ModelProto:
    """Returns a loop over the rows of `x`; each iteration reads some rows."""
    text = f"""sizes = Shape (x) {trip}
    y, all = Loop (n, , start) <body = b (int64 i, bool c, float[1, 3] s)
             => (bool c2, float[1, 3] s2, float[a, 3] part) {{
          c2 = Identity (c) {body} part = Mul (some, s) last = Slice (part, minus, far, axis)
          s2 = Tanh (last) }}>"""
    constants = {
        **_WHOLE,
        "zero": number(0),
        "minus": np.array([-1]),
        "far": np.array([1 << 40]),
        "start": f32(1, 3, seed=1),
    }
    return parsed(f"({signature}) => (float[1, 3] y, float[r, a, 3] all)", text, constants)


ONE_ROW = """j = Add (i, one) begin = Unsqueeze (i, axis) stop = Unsqueeze (j, axis)
    some = Slice (x, begin, stop, axis)"""
CLIPPED = """j = Add (i, one) begin = Unsqueeze (i, axis) long = Unsqueeze (j, axis)
    size = Shape <start = 0, end = 1> (x) stop = Min (size, long)
    picked = Slice (x, begin, stop, axis) from = Squeeze (begin, axis) to = Squeeze (stop, axis)
    numbers = Range (from, to, one) f = Cast <to = 1> (numbers) some = Add (picked, f)"""
THROUGH_FLOATS = """f = Cast <to = 1> (i) g = Add (f, float_one) j = Cast <to = 7> (g)
    begin = Unsqueeze (i, axis) stop = Unsqueeze (j, axis) some = Slice (x, begin, stop, axis)"""
BACKWARDS = """j = Sub (n, i) k = Sub (j, one) begin = Unsqueeze (k, axis)
    stop = Unsqueeze (j, axis) some = Slice (x, begin, stop, axis)"""


@pytest.mark.parametrize("body", [ONE_ROW, CLIPPED])
def test_a_size_that_is_the_same_in_all_iterations(body: str) -> None:
    """Checks that one program serves all numbers of rows."""
    model = rows("float[rows, 3] x", body)
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert is_symbolic(executable)
    for count in (5, 2, 300):
        feeds = {"x": f32(count, 3, seed=count)}
        assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))
    (variant,) = executable.report().variants
    assert not variant.reason


@pytest.mark.parametrize("body", [ONE_ROW, CLIPPED, THROUGH_FLOATS, BACKWARDS])
def test_a_loop_of_a_known_number_of_iterations(body: str) -> None:
    model = rows("float[6, 3] x", body)
    assert "relay.for" in str(import_model(model).module)
    feeds = {"x": f32(6, 3)}
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))


def test_slices_beyond_the_last_row_are_written_out() -> None:
    """Checks last iterations that read no row, so that the size differs between iterations."""
    model = parsed(
        "(float[6, 3] x) => (float[3] y)",
        """y = Loop (n, , start) <body = b (int64 i, bool c, float[3] s) => (bool c2, float[3] s2) {
             c2 = Identity (c) j = Add (i, two) begin = Unsqueeze (i, axis)
             stop = Unsqueeze (j, axis) some = Slice (x, begin, stop, axis)
             t = ReduceSum <keepdims = 0> (some, axis) s2 = Add (s, t) }>""",
        {**_WHOLE, "two": number(2), "n": number(8), "start": f32(3, seed=1)},
    )
    assert "relay.for" not in str(import_model(model).module)
    feeds = {"x": f32(6, 3)}
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))


def test_operands_that_do_not_fit_together_are_refused() -> None:
    body = f"{ONE_ROW} more = Concat <axis = 0> (stop, stop) z = Slice (x, begin, more)"
    with pytest.raises(InvalidModelError, match="accepted are as many of each"):
        import_model(rows("float[6, 3] x", body))


_PADDLE = """b (int64 i, bool c, int64 k, int64 bound, float[b, 9, 3] out, bool found, float[b] any,
                float[3, 3] w, float[b, 3] h)
        => (bool more3, int64 k2, int64 bound, float[b, 9, 3] out2, bool found2, float[b, 3] any2,
            float[3, 3] w, float[b, 3] h2) {
      p = MatMul (h, w) h2 = Tanh (p) any2 = Identity (h2)
      kf = Cast <to = 1> (k) kf1 = Add (kf, float_one) k1 = Cast <to = 7> (kf1)
      begin = Reshape (k, vector) long = Reshape (k1, vector)
      size = Shape <start = 1, end = 2> (out) stop = Min (size, long)
      old = Slice (out, begin, stop, vector) old_shape = Shape (old)
      row = Unsqueeze (h2, vector) update = Expand (row, old_shape)
      from = Squeeze (begin) to = Squeeze (stop) numbers = Range (from, to, one)
      column = Reshape (numbers, middle) batch = Slice (old_shape, axis, vector, axis)
      width = Slice (old_shape, two, three, axis) times = Concat <axis = 0> (batch, vector, width)
      places = Tile (column, times) out2 = ScatterElements <axis = 1> (out, places, update)
      most = ReduceMax <keepdims = 0> (h2) done = Greater (most, limit)
      which = If (done) <then_branch = t () => (bool yes) { yes = Constant <value = bool {1}> () },
        else_branch = e () => (bool also) {
          f1 = Cast <to = 7> (found) f2 = Add (f1, axis) also = Cast <to = 9> (f2) }>
      w1 = Cast <to = 7> (which) w2 = Add (w1, axis) found2 = Cast <to = 9> (w2)
      bf = Cast <to = 1> (bound) bf1 = Add (bf, float_one) less = Less (kf1, bf1)
      not = Not (which) more = And (less, not) more1 = Cast <to = 7> (more)
      more2 = Add (more1, axis) more3 = Cast <to = 9> (more2)
      k1v = Unsqueeze (k1, axis) k1z = Add (k1v, axis) k2 = Squeeze (k1z, axis) }"""


def _paddle(limit: float) -> onnx.ModelProto:
    """Returns a `while` as exporters of Paddle write it: it fills rows until something is found."""
    return parsed(
        "(float[b, 3] x) => (float[b, 9, 3] filled, int64 count)",
        f"""go = Constant <value = bool {{1}}> () images = Shape <start = 0, end = 1> (x)
        shape = Concat <axis = 0> (images, rest) empty = ConstantOfShape (shape)
        count, bound2, filled, found2, any2, w2, h2 =
          Loop (trips, go, zero, bound, empty, no, any, w, x) <body = {_PADDLE}>""",
        {
            **_WHOLE,
            "vector": np.array([1]),
            "two": np.array([2]),
            "three": np.array([3]),
            "middle": np.array([1, -1, 1]),
            "limit": np.array(limit, np.float32),
            "rest": np.array([9, 3]),
            "trips": np.array([1024]),
            "bound": number(8),
            "zero": number(0),
            "no": np.array(False),
            "any": np.ones(1, np.float32),
            "w": 1.2 * np.eye(3, dtype=np.float32) + 0.1 * f32(3, 3, seed=4),
        },
    )


@pytest.mark.parametrize("limit", [0.0, 0.6, 2.0])
def test_rows_that_are_filled_until_something_is_found(limit: float) -> None:
    """Checks that all sizes are the same in all iterations, and that one program serves all
    batches.
    """
    model = _paddle(limit)
    text = str(import_model(model, {"x": (2, 3)}).module)
    assert "relay.while" in text
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    for batch in (1, 4):
        feeds = {"x": 0.4 * f32(batch, 3, seed=batch)}
        assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))


@pytest.mark.parametrize(
    ("first", "trips", "condition"),
    [
        (0, 100, "more = Less (k2, bound)"),
        (3, 100, "more = Less (k, bound)"),
        (9, 100, "more = Less (k2, bound)"),
        (-2, 4, "more = LessOrEqual (k2, bound)"),
        (0, 100, "more = Greater (bound, k2)"),
        (0, 100, "a = GreaterOrEqual (bound, k2) b = Less (s2, high) more = And (a, b)"),
        (0, 100, "b = Greater (k2, bound) more = Not (b)"),
    ],
)
def test_how_often_a_counter_lets_a_loop_run(first: int, trips: int, condition: str) -> None:
    model = parsed(
        "(float x) => (int64 count, float y)",
        f"""go = Constant <value = bool {{1}}> () r = Sub (x, x)
        count, y = Loop (trips, go, first, x) <body = b (int64 i, bool c, int64 k, float s)
            => (bool more, int64 k2, float s2) {{
          k2 = Add (k, one) f = Cast <to = 1> (k) s2 = Add (s, f) {condition} }}>""",
        {
            "one": number(1),
            "bound": number(7),
            "first": number(first),
            "trips": number(trips),
            "high": np.array(11, np.float32),
        },
    )
    feeds = {"x": np.array(0.5, np.float32)}
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))


def test_what_is_carried_and_not_given_is_left_alone() -> None:
    """Checks a loop with fewer outputs than loop-carried values, one of which is constant."""
    model = parsed(
        "(float x) => (int64 count)",
        """go = Constant <value = bool {1}> ()
        count = Loop (trips, go, first, x, x) <body = b (int64 i, bool c, int64 k, float s, float t)
            => (bool more, int64 k2, float s2, float t) {
          k2 = Add (k, one) s2 = Mul (s, t) a = Less (k2, bound) b = Less (s2, high)
          more = And (a, b) }>""",
        {
            "one": number(1),
            "bound": number(7),
            "first": number(0),
            "trips": number(9),
            "high": np.array(11, np.float32),
        },
    )
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    feeds = {"x": np.array(3, np.float32)}
    assert executable.run(feeds)["count"] == 2  # 9, then 27


_EITHER = (
    """(bool given, float[2] x) => (float[r] y)""",
    """high = ReduceMax <keepdims = 0> (x)
    computed = Greater (high, half) one = If ({}) <
      then_branch = t () => (float a) {{ a = ReduceSum <keepdims = 0> (x) }},
      else_branch = e () => (float b) {{ b = ReduceMin <keepdims = 1> (x) }}>
    {}""",
)
_HALF = {"half": np.array(0.5, np.float32), "two": np.array([2.0], np.float32)}


def _either(condition: str, rest: str) -> onnx.ModelProto:
    return parsed(_EITHER[0], _EITHER[1].format(condition, rest), _HALF)


@pytest.mark.parametrize("high", [0.2, 0.9])
def test_branches_of_rank_0_and_1_whose_rank_does_not_show(high: float) -> None:
    model = _either("computed", "minus = Neg (one) sum = Add (minus, half) y = Mul (sum, two)")
    feeds = {"given": np.array(True), "x": np.array([0.1, high], np.float32)}
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))


@pytest.mark.parametrize("condition", ["given", "computed"])
@pytest.mark.parametrize("rest", ["y = Neg (one)", "s = Shape (one) y = Expand (two, s)"])
def test_a_rank_that_shows_is_compiled_for_the_values_of_inputs(condition: str, rest: str) -> None:
    model = _either(condition, rest)
    executable = byoc_mlir.compile(model, targets=())
    for value, high in ((True, 0.2), (False, 0.9)):
        feeds = {"given": np.array(value), "x": np.array([0.1, high], np.float32)}
        (wanted,) = expected(model, feeds)
        found = executable.run(feeds)["y"]
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted)


def test_a_rank_that_shows_in_a_body_is_refused() -> None:
    model = parsed(
        "(float[2] x) => (float[2] y)",
        """y = Loop (n, , x) <body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) {
          c2 = Identity (c) high = ReduceMax <keepdims = 0> (s) some = Greater (high, half)
          one = If (some) <
            then_branch = t () => (float a) { a = ReduceSum <keepdims = 0> (s) },
            else_branch = e () => (float b) { b = ReduceMin <keepdims = 1> (s) }>
          shape = Shape (one) sum = Expand (two, shape) s2 = Add (s, sum) }>""",
        {**_HALF, "n": number(100)},
    )
    with pytest.raises(UnsupportedModelError, match=r"the rank of 'one' is 0 or 1"):
        import_model(model)
