"""Branches and loops on tensors whose sizes are arguments of native code."""

from __future__ import annotations

import pytest
from dynamic_models import Sizes, check_one_program
from helpers.models import parsed


def _sizes(*pairs: tuple[int, int]) -> list[Sizes]:
    return [{"n": n, "m": m} for n, m in pairs]


_ANY = _sizes((4, 5), (1, 1), (7, 3), (2, 33), (0, 3), (2, 1), (0, 0))


def test_a_branch() -> None:
    model = parsed(
        "(float[n,m] x, bool c) => (float[n,m] y)",
        """
        z = Relu(x)
        r = If (c) <
          then_branch = then_graph () => (float[n,m] t) { e = Exp(x)  t = Mul(e, z) },
          else_branch = else_graph () => (float[n,m] f) { s = Softmax(x)  f = Add(s, z) }
        >
        y = Neg(r)
        """,
    )
    check_one_program(model, _ANY)


def test_a_loop_of_a_known_number() -> None:
    model = parsed(
        "(float[n,m] x) => (float[n,m] y, float[k,n,m] rows)",
        """
        count = Constant <value = int64 {3}> ()
        going = Constant <value = bool {1}> ()
        y, rows = Loop (count, going, x) <
          body = step (int64 i, bool c, float[n,m] s) => (bool g, float[n,m] t, float[n,m] r) {
            g = Identity(c)  e = Tanh(s)  t = Add(e, x)  r = Mul(t, s)
          }
        >
        """,
    )
    check_one_program(model, _ANY)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_loop_of_as_many_as_there_are_rows(threads: int) -> None:
    model = parsed(
        "(float[n,m] x) => (float[m] y, float[n,m] rows)",
        """
        shape = Shape <start = 0, end = 1> (x)
        zero = Constant <value_ints = [0]> ()
        count = Squeeze(shape, zero)
        going = Constant <value = bool {1}> ()
        s0 = ReduceMax <axes = [0], keepdims = 0> (x)
        y, rows = Loop (count, going, s0) <
          body = step (int64 i, bool c, float[m] s) => (bool g, float[m] t, float[m] r) {
            g = Identity(c)  row = Gather(x, i)  t = Sub(row, s)  r = Softmax(t)
          }
        >
        """,
    )
    check_one_program(model, _sizes((4, 5), (1, 1), (7, 3), (2, 33), (5, 1)), threads)


def test_a_loop_of_a_computed_number() -> None:
    model = parsed(
        "(float[n,m] x, int64 count) => (float[n,m] y)",
        """
        going = Constant <value = bool {1}> ()
        y = Loop (count, going, x) <
          body = step (int64 i, bool c, float[n,m] s) => (bool g, float[n,m] t) {
            g = Identity(c)  e = Tanh(s)  t = Add(e, x)
          }
        >
        """,
    )
    check_one_program(model, _ANY)


@pytest.mark.parametrize("backward", [0, 1])
def test_a_scan_along_a_size(backward: int) -> None:
    model = parsed(
        "(float[n,m,6] x, float[n,6] first) => (float[n,6] last, float[n,m,6] y)",
        f"""
        last, y = Scan <
          num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
          scan_input_directions = [{backward}], scan_output_directions = [{backward}],
          body = step (float[n,6] s, float[n,6] row) => (float[n,6] t, float[n,6] r) {{
            h = Tanh(s)  t = Add(h, row)  r = Softmax(t)
          }}
        > (first, x)
        """,
    )
    check_one_program(model, _sizes((4, 5), (1, 1), (7, 3), (2, 33), (1, 2)))


def test_loops_in_branches_and_loops() -> None:
    model = parsed(
        "(float[n,m] x, bool c) => (float[n,m] y)",
        """
        count = Constant <value = int64 {2}> ()
        going = Constant <value = bool {1}> ()
        y = Loop (count, going, x) <
          body = outer (int64 i, bool g0, float[n,m] s) => (bool g1, float[n,m] t) {
            g1 = Identity(g0)
            b = If (c) <
              then_branch = then_graph () => (float[n,m] u) {
                u = Loop (count, going, s) <
                  body = inner (int64 j, bool h0, float[n,m] v) => (bool h1, float[n,m] w) {
                    h1 = Identity(h0)  k = Sigmoid(v)  w = Mul(k, s)
                  }
                >
              },
              else_branch = else_graph () => (float[n,m] z) { q = Softmax(s)  z = Neg(q) }
            >
            t = Add(b, x)
          }
        >
        """,
    )
    check_one_program(model, _ANY)
