"""`Loop` with bodies that are functions, and loops that are unrolled."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from control_models import CALLS, Array, Counted, check, expected, f32
from helpers.models import parsed

import byoc_mlir
from byoc_mlir.backends import register_backend
from byoc_mlir.compiler.pipeline import CANONICALISATION
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import ExecutionError, InvalidModelError, UnsupportedModelError
from byoc_mlir.frontend import import_model
from byoc_mlir.lowering.host_pipeline import run_passes
from byoc_mlir.runtime.plan import Leaf

register_backend(Counted)


def number(value: int) -> Array:
    return np.array(value, np.int64)


def ops_of(model: object) -> list[str]:
    module = import_model(model).module  # pyright: ignore[reportArgumentType]
    return [op.name for op in module.walk() if op.name.startswith("relay.")]


COUNTED_LOOP = parsed(
    "(float[4] x, float[4] z) => (float[4] y, float[5, 4] rows)",
    """y, rows = Loop (n, go, x) <body = b (int64 i, bool c, float[4] s)
           => (bool c2, float[4] s2, float[4] row) {
         c2 = Identity (c) t = Mul (s, z) f = Cast <to = 1> (i) row = Add (t, f)
         s2 = Add (row, k) }>""",
    {"n": number(5), "go": np.array(True), "k": f32(4, seed=3)},
)


def test_a_known_number_of_iterations() -> None:
    assert ops_of(COUNTED_LOOP).count("relay.for") == 1
    assert ops_of(COUNTED_LOOP).count("relay.multiply") == 1
    check(COUNTED_LOOP, [{"x": f32(4), "z": f32(4, seed=1)}])


UNTIL = parsed(
    "(float[4] x, int64 n, bool go) => (float[4] y, int64 count)",
    """y, count = Loop (n, go, x, zero) <body = b (int64 i, bool c, float[4] s, int64 k)
           => (bool more, float[4] s2, int64 k2) {
         s2 = Add (s, x) k2 = Add (k, one) m = ReduceMax <keepdims = 0> (s2)
         more = Less (m, limit) }>""",
    {"zero": number(0), "one": number(1), "limit": np.array(8, np.float32)},
)


def test_loops_that_end_early_and_loops_that_never_begin() -> None:
    assert "relay.while" in ops_of(UNTIL)
    feeds = [
        {"x": np.array(x, np.float32), "n": number(n), "go": np.array(go)}
        for x in ([1, 2, 3, 0.5], [0.001, 0, 0, 0], [9, 1, 1, 1])
        for n, go in ((9, True), (200, True), (0, True), (-1, True), (9, False), (1, True))
    ]
    check(UNTIL, feeds)


def test_a_loop_without_a_limit() -> None:
    model = parsed(
        "(float[4] x) => (float[4] y)",
        """y = Loop (, , x) <body = b (int64 i, bool c, float[4] s)
             => (bool more, float[4] s2) {
           s2 = Mul (s, two) m = ReduceMax <keepdims = 0> (s2) more = Less (m, limit) }>""",
        {"two": np.array(2, np.float32), "limit": np.array(1000, np.float32)},
    )
    check(model, [{"x": np.array([1, 2, 3, -4], np.float32)}])


def test_branches_in_a_loop() -> None:
    model = parsed(
        "(float[4] x, bool c) => (float[4] y, float[6, 4] rows)",
        """y, rows = Loop (n, , x) <body = b (int64 i, bool go, float[4] s)
               => (bool go2, float[4] s2, float[4] row) {
             go2 = Identity (go) odd = Mod (i, two) is_odd = Cast <to = 9> (odd)
             s2 = If (is_odd) <
               then_branch = t () => (float[4] p) { p = Add (s, x) },
               else_branch = e () => (float[4] q) {
                 q = If (c) <then_branch = tt () => (float[4] qp) { qp = Mul (s, k) },
                             else_branch = te () => (float[4] qe) { qe = Sub (s, k) }> }>
             row = Neg (s) }>""",
        {"n": number(6), "two": number(2), "k": f32(4, seed=3)},
    )
    check(model, [{"x": f32(4), "c": np.array(c)} for c in (True, False)])


def test_a_loop_in_a_loop_with_products() -> None:
    model = parsed(
        "(float[3, 8] x) => (float[3, 8] y)",
        """y = Loop (n, , x) <body = b (int64 i, bool c, float[3, 8] s)
             => (bool c2, float[3, 8] s2) {
           c2 = Identity (c) a = MatMul (s, w) t = Tanh (a)
           s2 = Loop (m, , t) <body = bb (int64 j, bool d, float[3, 8] r)
               => (bool d2, float[3, 8] r2) {
             d2 = Identity (d) e = MatMul (r, w) g = Add (e, s) r2 = Tanh (g) }> }>""",
        {"n": number(3), "m": number(2), "w": f32(8, 8, seed=5)},
    )
    with byoc_mlir.compile(model, targets=("dnnl",), prune="off") as executable:
        rows = {row.node: row.placement for row in executable.report()}
    assert rows["Loop_0/body/MatMul_1"] == "dnnl"
    assert rows["Loop_0/body/Loop_3/body/MatMul_1"] == "dnnl"
    check(model, [{"x": f32(3, 8)}])


def test_states_that_change_places() -> None:
    model = parsed(
        "(float[4] x, float[4] z) => (float[4] y, float[4] v)",
        """y, v = Loop (n, , x, z) <body = b (int64 i, bool c, float[4] s, float[4] r)
             => (bool c2, float[4] r2, float[4] s2) {
           c2 = Identity (c) r2 = Identity (r) s2 = Add (s, r) }>""",
        {"n": number(5)},
    )
    check(model, [{"x": f32(4), "z": f32(4, seed=1)}])


def test_small_and_empty_types() -> None:
    model = parsed(
        "(bool[3] x, uint8[3] u, float[0] z) => (bool[3] y, uint8[3] v, float[0] w, float[4, 0] r)",
        """y, v, w, r = Loop (n, , x, u, z) <
             body = b (int64 i, bool c, bool[3] s, uint8[3] t, float[0] e)
               => (bool c2, bool[3] s2, uint8[3] t2, float[0] e2, float[0] row) {
           c2 = Identity (c) s2 = Not (s) t2 = Add (t, t) e2 = Neg (e) row = Abs (e) }>""",
        {"n": number(4)},
    )
    feeds = {
        "x": np.array([True, False, True]),
        "u": np.array([1, 2, 5], np.uint8),
        "z": np.zeros(0, np.float32),
    }
    check(model, [feeds])


def test_regions_run_once_for_each_iteration() -> None:
    model = parsed(
        "(float[4] x, int64 n) => (float[4] y)",
        """y = Loop (n, , x) <body = b (int64 i, bool c, float[4] s)
             => (bool c2, float[4] s2) {
           c2 = Identity (c) a = Relu (s) s2 = Sub (a, one) }>""",
        {"one": np.array(1, np.float32)},
    )
    with byoc_mlir.compile(model, targets=("counted",), prune="off") as executable:
        for count in (3, 0, 7):
            CALLS.clear()
            executable.run({"x": np.full(4, 5, np.float32), "n": number(count)})
            assert CALLS == ["nn.relu"] * count  # noqa: SIM300 - what is found comes first


def test_a_failure_ends_the_loop() -> None:
    model = parsed(
        "(float[4] x) => (float[4] y)",
        """y = Loop (n, , x) <body = b (int64 i, bool c, float[4] s)
             => (bool c2, float[4] s2) {
           c2 = Identity (c) a = Sin (s) s2 = Sub (a, half) }>""",
        {"n": number(50), "half": np.array(0.5, np.float32)},
    )
    with byoc_mlir.compile(model, targets=("counted",), prune="off") as executable:
        CALLS.clear()
        with pytest.raises(ExecutionError, match="a negative sine"):
            executable.run({"x": np.full(4, 1, np.float32)})
        assert 1 < len(CALLS) < 10


def test_states_that_grow_are_written_out() -> None:
    model = parsed(
        "(float[2] x) => (float[y] y)",
        """y = Loop (n, , x) <body = b (int64 i, bool c, float[s] s)
             => (bool c2, float[s] s2) {
           c2 = Identity (c) s2 = Concat <axis = 0> (s, x) }>""",
        {"n": number(3)},
    )
    assert "relay.for" not in ops_of(model)
    check(model, [{"x": f32(2)}], [()])


def test_what_depends_on_nothing_is_folded() -> None:
    model = parsed(
        "(float[4] x) => (float[4] y)",
        """total = Loop (n, , zero) <body = b (int64 i, bool c, float s)
             => (bool c2, float s2) {
           c2 = Identity (c) f = Cast <to = 1> (i) s2 = Add (s, f) }>
           y = Mul (x, total)""",
        {"n": number(10), "zero": np.array(0, np.float32)},
    )
    assert ops_of(model) == ["relay.constant", "relay.multiply"]


COLLECTING = """y, rows, twice = Loop ({count}, , x) <body = b (int64 i, bool c, float[4] s)
       => (bool more, float[4] s2, float[4] row, float[2, 4] both) {{
     s2 = Add (s, s) row = Neg (s) m = ReduceMax <keepdims = 0> (s2)
     more = Less (m, limit) head = Unsqueeze (s, zero) tail = Unsqueeze (s2, zero)
     both = Concat <axis = 0> (head, tail) }}>
   total = ReduceSum <keepdims = 0> (rows)"""


def collecting(count: str) -> onnx.ModelProto:
    return parsed(
        "(float[4] x) => (float[4] y, float[r, 4] rows, float[r, 2, 4] twice, float total)",
        COLLECTING.format(count=count),
        {"limit": np.array(100, np.float32), "most": number(12), "zero": np.array([0])},
    )


def test_rows_of_a_loop_that_ends_early() -> None:
    starts = ([1, 2, 3, 4], [90, 1, 1, 1], [1e-9, 0, 0, 0], [200, 1, 1, 1])
    check(collecting("most"), [{"x": np.array(x, np.float32)} for x in starts])


def test_rows_of_a_loop_without_a_limit_are_refused() -> None:
    with pytest.raises(UnsupportedModelError, match="number of iterations is computed at run time"):
        import_model(collecting(""))


def test_rows_that_nobody_needs() -> None:
    model = collecting("")
    del model.graph.node[1], model.graph.output[1:]
    model.graph.node[0].output[1:] = ["", ""]
    with byoc_mlir.compile(model, targets=()) as executable:
        found = executable.run({"x": np.array([1, 2, 3, 4], np.float32)})["y"]
    np.testing.assert_array_equal(found, [32, 64, 96, 128])


def test_a_count_of_one_s_own_is_folded() -> None:
    model = parsed(
        "(float[4] x) => (float[4] y, float[r, 4] rows)",
        """y, k, rows = Loop (most, , x, zero) <body = b (int64 i, bool c, float[4] s, int64 k)
             => (bool more, float[4] s2, int64 k2, float[4] row) {
           s2 = Add (s, x) row = Neg (s) k2 = Add (k, one) more = Less (k2, three) }>""",
        {"most": number(100), "zero": number(0), "one": number(1), "three": number(3)},
    )
    with byoc_mlir.compile(model, targets=()) as executable:
        assert executable.run({"x": f32(4)})["rows"].shape == (3, 4)
        assert isinstance(executable.plan, Leaf)  # one stage
    check(model, [{"x": f32(4)}], [()])


@pytest.mark.parametrize("threads", [1, 2])
def test_one_compilation_of_kernels_serves_other_shapes(threads: int) -> None:
    model = parsed(
        "(float[batch, 64] x) => (float[batch, 64] y, float[4, batch, 64] rows)",
        """y, rows = Loop (n, , x) <body = b (int64 i, bool c, float[batch, 64] s)
             => (bool c2, float[batch, 64] s2, float[batch, 64] row) {
           c2 = Identity (c) a = MatMul (s, w) s2 = Tanh (a) row = Exp (s2) }>""",
        {"n": number(4), "w": f32(64, 64, seed=5) / 8},
    )
    with byoc_mlir.compile(model, targets=(), threads=threads) as executable:
        for batch in (1, 200, 7):
            feeds = {"x": f32(batch, 64)}
            for got, want in zip(
                executable.run(feeds).values(), expected(model, feeds), strict=True
            ):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_types_of_eight_bits() -> None:
    model = parsed(
        "(float[4] x, bool c) => (float[4] y)",
        """e = Cast <to = 17> (x)
           r = Loop (n, , e) <body = b (int64 i, bool d, float8e4m3fn[4] s)
                 => (bool d2, float8e4m3fn[4] s2) {
             d2 = Identity (d) w = Cast <to = 1> (s) h = Mul (w, half) s2 = Cast <to = 17> (h) }>
           y = Cast <to = 1> (r)""",
        {"n": number(3), "half": np.array(0.5, np.float32)},
        opset=19,
    )
    with byoc_mlir.compile(model, targets=()) as executable:
        found = executable.run({"x": np.array([8, -16, 1, 0], np.float32), "c": np.array(True)})
    np.testing.assert_array_equal(found["y"], [1, -2, 0.125, 0])


def test_what_nobody_needs_is_gone() -> None:
    model = parsed(
        "(float[4] x) => (float[4] y)",
        """unused = Loop (n, , x) <body = b (int64 i, bool c, float[4] s)
             => (bool c2, float[4] s2) { c2 = Identity (c) s2 = Sin (s) }>
           y = Neg (x)""",
        {"n": number(3)},
    )
    module = import_model(model).module
    run_passes(make_context(), module, CANONICALISATION)
    assert [op.name for op in module.walk() if op.name.startswith(("relay.", "func.func"))] == [
        "func.func",
        "relay.negative",
    ]


def test_errors_in_bodies_name_the_node() -> None:
    model = parsed(
        "(float[4] x) => (float[4] y)",
        """y = Loop (n, , x) <body = b (int64 i, bool c, float[4] s)
             => (bool c2, float[4] s2) {
           c2 = Identity (c) a = Neg (s) s2 = Add (a, k) }>""",
        {"n": number(3), "k": f32(3)},
    )
    with pytest.raises(InvalidModelError, match=r"node 'Loop_0/body/Add_2' \(Add\)"):
        import_model(model)
