"""`If` on conditions that are computed at run time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from control_models import CALLS, Counted, check, expected, f32
from helpers.models import parsed
from xdsl.parser import Parser

import byoc_mlir
from byoc_mlir.backends import register_backend
from byoc_mlir.dialects import make_context
from byoc_mlir.errors import ExecutionError, InputValuesNeededError
from byoc_mlir.frontend import import_model

register_backend(Counted)

YES, NO = np.array(True), np.array(False)

COUNTED = parsed(
    "(float[4] x, bool c) => (float[4] y)",
    """y = If (c) <then_branch = t () => (float[4] p) { p = Relu (x) },
                  else_branch = e () => (float[4] q) { q = Sin (x) }>""",
)


def test_one_branch_runs() -> None:
    x = np.abs(f32(4)) + 0.1
    with byoc_mlir.compile(COUNTED, targets=("counted",), prune="off") as executable:
        for condition, kind in ((YES, "nn.relu"), (NO, "sin"), (NO, "sin")):
            CALLS.clear()
            executable.run({"x": x, "c": condition})
            assert [kind] == CALLS


def test_a_failure_in_a_branch_leaves_the_model() -> None:
    x = np.array([1, -1, 0.5, 2], np.float32)
    with byoc_mlir.compile(COUNTED, targets=("counted",), prune="off") as executable:
        with pytest.raises(ExecutionError, match="a negative sine"):
            executable.run({"x": x, "c": NO})
        found = executable.run({"x": x, "c": YES})["y"]
    np.testing.assert_array_equal(found, np.maximum(x, 0))


def test_an_export_has_the_branches(tmp_path: Path) -> None:
    path = tmp_path / "model.so"
    model = parsed(
        "(float[4, 8] x, bool c) => (float[4, 8] y)",
        """y = If (c) <then_branch = t () => (float[4, 8] p) { p = MatMul (x, w) },
                      else_branch = e () => (float[4, 8] q) { q = Sin (x) }>""",
        {"w": f32(8, 8, seed=1)},
    )
    with byoc_mlir.compile(model, targets=("dnnl",), prune="off") as executable:
        executable.export_library(path)
    feeds = [{"x": f32(4, 8), "c": condition} for condition in (YES, NO)]
    with byoc_mlir.load(path) as loaded:
        for given in feeds:
            (want,) = expected(model, given)
            np.testing.assert_allclose(loaded.run(given)["y"], want, rtol=1e-5, atol=1e-5)


def test_convolutions_in_branches_are_in_regions() -> None:
    model = parsed(
        "(float[1, 8, 12, 12] x, bool c) => (float[1, 8, 12, 12] y)",
        """a = Relu (x)
           b = If (c) <then_branch = t () => (float[1, 8, 12, 12] p)
                         { q = Conv <pads = [1, 1, 1, 1]> (a, w) p = Relu (q) },
                       else_branch = e () => (float[1, 8, 12, 12] r)
                         { r = Conv <pads = [1, 1, 1, 1]> (a, w) }>
           y = Add (b, x)""",
        {"w": f32(8, 8, 3, 3, seed=2)},
    )
    with byoc_mlir.compile(model, targets=("dnnl",), prune="off") as executable:
        rows = {row.node: row for row in executable.report()}
    convolutions = [rows[f"If_1/{branch}/Conv_0"] for branch in ("then_branch", "else_branch")]
    assert [row.placement for row in convolutions] == ["dnnl", "dnnl"]
    assert convolutions[0].composite == "dnnl.conv2d_relu"
    assert convolutions[0].region != convolutions[1].region
    feeds = [{"x": f32(1, 8, 12, 12), "c": condition} for condition in (YES, NO)]
    check(model, feeds, atol=1e-4)  # results up to 19, by Winograd's algorithm where that is chosen


def test_branches_in_branches_and_what_they_take_from_around() -> None:
    model = parsed(
        "(float[4] x, float[4] z, bool c, bool[1] d) => (float[4] y, float[4] v)",
        """s = Mul (x, z)
           y, v = If (c) <
             then_branch = t () => (float[4] p, float[4] u) {
               w = Add (s, k)
               p, u = If (d) <
                 then_branch = tt () => (float[4] pp, float[4] uu)
                   { pp = Sub (w, x) uu = Identity (x) },
                 else_branch = te () => (float[4] ppp, float[4] uuu)
                   { ppp = Identity (w) uuu = Identity (k) }>
             },
             else_branch = e () => (float[4] q, float[4] r) { q = Mul (s, k) r = Identity (k) }>""",
        {"k": f32(4, seed=3)},
    )
    feeds = [
        {"x": f32(4), "z": f32(4, seed=1), "c": c, "d": d.reshape(1)}
        for c in (YES, NO)
        for d in (YES, NO)
    ]
    check(model, feeds)


def test_sequences_from_branches() -> None:
    model = parsed(
        "(float[4] x, bool c) => (float[8] y)",
        """s = If (c) <then_branch = t () => (seq(float[4]) p)
                         { a = Neg (x) p = SequenceConstruct (a, x) },
                       else_branch = e () => (seq(float[4]) q)
                         { b = Abs (x) q = SequenceConstruct (x, b) }>
           y = ConcatFromSequence <axis = 0> (s)""",
    )
    check(model, [{"x": f32(4), "c": condition} for condition in (YES, NO)], [()])


def test_a_static_condition_leaves_one_branch() -> None:
    model = parsed(
        "(float[4] x) => (float[4] y)",
        """y = If (k) <then_branch = t () => (float[4] p) { p = Sin (x) },
                      else_branch = e () => (float[4] q) { q = NotAnOp (x) }>""",
        {"k": YES},
    )
    module = import_model(model).module
    assert [op.name for op in module.walk() if op.name.startswith("relay.")] == ["relay.sin"]


def test_branches_of_other_shapes_ask_for_the_condition() -> None:
    model = parsed(
        "(float[4] x, bool c) => (float y)",
        """z = If (c) <then_branch = t () => (float[2] p) { p = Slice (x, zero, two) },
                      else_branch = e () => (float[4] q) { q = Identity (x) }>
           y = ReduceSum <keepdims = 0> (z)""",
        {"zero": np.array([0]), "two": np.array([2])},
    )
    with pytest.raises(InputValuesNeededError, match="the branches give"):
        import_model(model)
    check(model, [{"x": f32(4), "c": condition} for condition in (YES, NO)], [()])


def test_errors_in_branches_name_the_node() -> None:
    model = parsed(
        "(float[4] x, bool c) => (float[4] y)",
        """d = Not (c)
           y = If (d) <then_branch = t () => (float[4] p) { p = Sin (x) },
                       else_branch = e () => (float[4] q) { q = Add (x, k) }>""",
        {"k": f32(3)},
    )
    model.graph.node[1].name = "choice"
    with pytest.raises(InputValuesNeededError, match="choice/else_branch/Add_0"):
        import_model(model)


def test_forbidden_fallback_allows_control_flow() -> None:
    with byoc_mlir.compile(
        COUNTED, targets=("counted",), prune="off", fallback="forbid"
    ) as executable:
        assert executable.report().counts() == {"counted": 2, "host": 1}


def test_a_module_with_control_flow_is_compiled() -> None:
    text = str(import_model(COUNTED).module)
    module = Parser(make_context(), text).parse_module()
    x = f32(4)
    with byoc_mlir.compile(module, targets=()) as executable:
        for condition, want in ((YES, np.maximum(x, 0)), (NO, np.sin(x))):
            found = executable.run({"x": x, "c": condition})["y"]
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
