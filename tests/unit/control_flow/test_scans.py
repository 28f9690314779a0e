"""`Scan` along axes, in both directions, with bodies that are functions."""

from __future__ import annotations

import numpy as np
import pytest
from control_models import check, f32
from helpers.models import parsed

from byoc_mlir.frontend import import_model

RECURRENT = """y, rows = Scan (h, x) <num_scan_inputs = 1, scan_input_directions = [{input}],
      scan_output_directions = [{output}], body = b (float[2, 8] s, float[2, 8] e)
        => (float[2, 8] s2, float[2, 8] row) {{
    a = MatMul (e, w) c = MatMul (s, r) t = Add (a, c) s2 = Tanh (t) row = Relu (s2) }}>"""


@pytest.mark.parametrize(("input_", "output"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_directions(input_: int, output: int) -> None:
    model = parsed(
        "(float[2, 8] h, float[6, 2, 8] x) => (float[2, 8] y, float[6, 2, 8] rows)",
        RECURRENT.format(input=input_, output=output),
        {"w": f32(8, 8, seed=1), "r": f32(8, 8, seed=2)},
    )
    module = import_model(model).module
    names = [op.name for op in module.walk()]
    assert (names.count("relay.for"), names.count("relay.tanh")) == (1, 1)
    check(model, [{"h": f32(2, 8), "x": f32(6, 2, 8, seed=3)}], [("dnnl",)])


def test_axes() -> None:
    model = parsed(
        "(float[3] s, float[3, 5] x, float[2, 3, 5] z)"
        " => (float[3] y, float[3, 5] p, float[2, 5, 3] q)",
        """y, p, q = Scan (s, x, z) <num_scan_inputs = 2, scan_input_axes = [1, -1],
             scan_input_directions = [0, 1], scan_output_axes = [1, -2],
             scan_output_directions = [1, 0],
             body = b (float[3] c, float[3] e, float[2, 3] g)
               => (float[3] c2, float[3] row, float[2, 3] other) {
           c2 = Add (c, e) row = Mul (c2, e) other = Add (g, c) }>""",
    )
    check(model, [{"s": f32(3), "x": f32(3, 5, seed=1), "z": f32(2, 3, 5, seed=2)}])


def test_scans_without_states() -> None:
    model = parsed(
        "(float[4, 3] x, float[3] k) => (float[4, 3] y)",
        """y = Scan (x) <num_scan_inputs = 1, body = b (float[3] e) => (float[3] row) {
           a = Mul (e, k) row = Sin (a) }>""",
    )
    check(model, [{"x": f32(4, 3), "k": f32(3, seed=1)}])


def test_scans_along_a_constant() -> None:
    model = parsed(
        "(float[3] s) => (float[3] y)",
        """y = Scan (s, table) <num_scan_inputs = 1, body = b (float[3] c, float[3] e)
             => (float[3] c2) { a = Mul (c, e) c2 = Sin (a) }>""",
        {"table": f32(4, 3, seed=1)},
    )
    check(model, [{"s": f32(3)}])


def test_a_scan_in_a_branch() -> None:
    model = parsed(
        "(float[3] s, float[4, 3] x, bool c) => (float[3] y)",
        """y = If (c) <then_branch = t () => (float[3] p) {
               p = Scan (s, x) <num_scan_inputs = 1, body = b (float[3] d, float[3] e)
                 => (float[3] d2) { a = Mul (d, e) d2 = Add (a, s) }> },
             else_branch = e () => (float[3] q) { q = Neg (s) }>""",
    )
    feeds = {"s": f32(3), "x": f32(4, 3, seed=1)}
    check(model, [{**feeds, "c": np.array(c)} for c in (True, False)])


def test_one_step_is_no_loop() -> None:
    model = parsed(
        "(float[3] s, float[1, 3] x) => (float[3] y)",
        """y = Scan (s, x) <num_scan_inputs = 1, body = b (float[3] c, float[3] e)
             => (float[3] c2) { c2 = Mul (c, e) }>""",
    )
    assert "relay.for" not in [op.name for op in import_model(model).module.walk()]
    check(model, [{"s": f32(3), "x": f32(1, 3, seed=1)}], [()])


def test_sizes_that_change() -> None:
    model = parsed(
        "(float[batch, 3] s, float[4, batch, 3] x, bool c)"
        " => (float[batch, 3] y, float[batch, 4, 3] rows)",
        """t = If (c) <then_branch = a () => (float[batch, 3] p) { p = Neg (s) },
                      else_branch = e () => (float[batch, 3] q) { q = Identity (s) }>
           y, rows = Scan (t, x) <num_scan_inputs = 1, scan_output_axes = [1],
               scan_output_directions = [1], body = b (float[batch, 3] d, float[batch, 3] e)
             => (float[batch, 3] d2, float[batch, 3] row) { d2 = Mul (d, e) row = Add (d2, t) }>""",
    )
    feeds = [
        {"s": f32(batch, 3), "x": f32(4, batch, 3, seed=1), "c": np.array(batch > 2)}
        for batch in (2, 5, 1)
    ]
    check(model, feeds, [()])
