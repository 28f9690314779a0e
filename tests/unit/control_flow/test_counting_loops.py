"""`Loop` without a trip count, which carries a counter and its bound: a `while` of TensorFlow."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from control_models import f32
from helpers.models import parsed
from helpers.programs import fixed_programs, generic_programs, is_symbolic

import byoc_mlir
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

_BODY = """b (int64 i, bool c, int32 n, float[1, 6] h, float[6, 6] v, float t)
           => (bool more, int32 n2, float[1, 6] h2, float[6, 6] v2, float t2, float[1, 6] row) {
         n2 = Add (n, one) row_x = Gather (x, n) p = MatMul (h, v) q = Add (p, row_x)
         h2 = Tanh (q) v2 = Identity (v) t2 = Identity (t) row = Identity (h2)
         m = Cast <to = 1> (n2) more = Less (m, t) }"""

_TEXT = f"""s = Shape <start = 0, end = 1> (x) axis = Constant <value_ints = [0]> ()
    steps = Squeeze (s, axis) bound = Cast <to = 1> (steps) go = Less (none, bound)
    count, y, w, end, rows = Loop (, go, zero, start, weight, bound) <body = {_BODY}>"""

_FRACTION = "e = Cast <to = 1> (steps) bound = Sub (e, half)"

_CONSTANTS = {
    "zero": np.array(0, np.int32),
    "one": np.array(1, np.int32),
    "none": np.array(0, np.float32),
    "half": np.array(0.5, np.float32),
    "three": np.array(3, np.uint8),
    "start": f32(1, 6, seed=1),
    "weight": f32(6, 6, seed=2),
}
_OUTPUTS = "(int32 count, float[1, 6] y, float[6, 6] w, float end, float[r, 1, 6] rows)"


def _model(text: str = _TEXT, **constants: int) -> onnx.ModelProto:
    given = {name: np.array(value, np.int32) for name, value in constants.items()}
    return parsed(f"(float[n, 6] x) => {_OUTPUTS}", text, {**_CONSTANTS, **given})


def _check(model: onnx.ModelProto, lengths: tuple[int, ...]) -> byoc_mlir.Executable:
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert is_symbolic(executable)
    for length in lengths:
        feeds = {"x": f32(length, 6, seed=length)}
        assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))
    return executable


def test_one_program_does_for_all_numbers_of_iterations() -> None:
    executable = _check(_model(), (5, 1, 300, 2))
    assert len(generic_programs(executable)) == 1
    assert len(fixed_programs(executable)) == 0


def test_what_is_carried_unchanged_is_read_where_it_is() -> None:
    module = import_model(_model(), {"x": (5, 6)}).module
    (loop,) = (op for op in module.walk() if op.name == "relay.for")
    assert loop.properties["carried"].value.data == 2  # pyright: ignore[reportAttributeAccessIssue]


def test_a_model_is_not_changed_by_it() -> None:
    model = _model()
    before = model.SerializeToString()
    byoc_mlir.compile(model, targets=(), threads=1)
    assert model.SerializeToString() == before


@pytest.mark.parametrize(
    "model",
    [
        _model(_TEXT.replace("bound = Cast <to = 1> (steps)", _FRACTION)),
        _model(one=2),
        _model(zero=1),
        _model(_TEXT.replace("Less (m, t)", "Less (t, m)")),
        _model(_TEXT.replace("t2 = Identity (t)", "t2 = Sub (t, half)")),
        _model(_TEXT.replace("more = Less (m, t)", "e = Less (m, t) more = And (e, c)")),
        _model(_TEXT.replace("more = Less (m, t)", "k = Cast <to = 2> (m) more = Less (k, three)")),
    ],
    ids=["fraction", "by-twos", "from-one", "down", "bound-moves", "other-end", "bytes"],
)
def test_loops_that_count_otherwise_are_right(model: onnx.ModelProto) -> None:
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    for length in (4, 3):
        feeds = {"x": f32(length, 6, seed=length)}
        assert_agrees(executable.run(feeds), run_onnxruntime(model, feeds))


def test_results_behind_the_last_one_that_is_read_may_be_left_out() -> None:
    """Checks a loop that ONNX's shape inference and ONNX Runtime refuse."""
    text = _TEXT.replace("count, y, w, end, rows = Loop", "count, y = Loop")
    short = parsed("(float[n, 6] x) => (int32 count, float[1, 6] y)", text, _CONSTANTS)
    feeds = {"x": f32(5, 6)}
    whole = run_onnxruntime(_model(), feeds)
    wanted = {name: whole[name] for name in ("count", "y")}
    assert_agrees(byoc_mlir.compile(short, targets=(), threads=1).run(feeds), wanted)


@pytest.mark.parametrize(
    ("found", "given"),
    [
        ("Less (none, bound)", "Less (bound)"),
        ("Add (n, one)", "Add (n)"),
        ("Less (m, t)", "Less (m, t, m)"),
        ("Cast <to = 1> (n2)", "Cast <to = 1> ()"),
    ],
)
def test_nodes_with_other_operands_are_typed_errors(found: str, given: str) -> None:
    with pytest.raises(ByocError):
        byoc_mlir.compile(_model(_TEXT.replace(found, given)), targets=(), threads=1).run(
            {"x": f32(3, 6)}
        )
