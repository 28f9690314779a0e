"""Shape-polymorphic programs: sizes are arguments of native code."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from dynamic_models import check_one_program, check_shapes, compiled, decoder, encoder
from helpers.programs import fixed_programs
from onnx import TensorProto

import byoc_mlir
from byoc_mlir.compiler import dynamic
from byoc_mlir.errors import InternalError, InvalidInputError, LimitExceededError
from byoc_mlir.limits import Limits
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import random_inputs


@pytest.mark.parametrize("threads", [1, 2])
def test_an_encoder_is_one_program(threads: int) -> None:
    sizes = [(2, 7), (3, 12), (1, 1), (1, 40), (4, 33), (0, 5), (2, 0), (2, 2)]
    check_one_program(encoder(), [{"batch": n, "seq": seq} for n, seq in sizes], threads)


def test_a_cache_that_grows_needs_one_program() -> None:
    sizes = [
        (1, 6, 2),
        (1, 1, 7),
        (1, 1, 8),
        (2, 3, 0),
        (1, 1, 40),
        (0, 1, 3),
        (3, 0, 4),
        (1, 1, 1),
    ]
    check_one_program(decoder(), [{"batch": n, "new": new, "past": past} for n, new, past in sizes])


def _reduced(b: GraphBuilder) -> str:
    x = b.input("x", ["n", 3, "m"])
    mean = b.op("ReduceMean", x, axes=[0, 2], keepdims=1)
    largest = b.op("ReduceMax", x, axes=[2], keepdims=1)
    return b.op("Add", b.op("Sub", x, mean), largest)


def _cut_and_joined(b: GraphBuilder) -> str:
    x = b.input("x", ["n", "m", 6])
    first = b.op("Slice", x, b.ints(0), b.ints(4), b.ints(2))
    last = b.op("Slice", x, b.ints(2), b.ints(6), b.ints(2))
    both = b.op("Concat", first, b.op("Sub", last, first), axis=1)
    return b.transpose(both, 2, 0, 1)


def _chosen(b: GraphBuilder) -> str:
    x, y = b.input("x", ["n", 5]), b.input("y", [1, 5])
    is_more = b.op("Greater", x, y)
    whole = b.op("Cast", is_more, to=TensorProto.FLOAT)
    return b.op("Where", is_more, b.op("Mul", x, y), b.op("Softmax", b.op("Add", x, whole)))


def _position(b: GraphBuilder) -> str:
    x = b.input("x", ["n", 4])
    count = b.op("Squeeze", b.op("Gather", b.op("Shape", x), b.ints(0)), b.ints(0))
    zero, one = b.constant(np.array(0)), b.constant(np.array(1))
    places = b.op("Unsqueeze", b.op("Range", zero, count, one), b.ints(1))
    return b.op("Add", x, b.op("Cast", places, to=TensorProto.FLOAT))


def _place_in_a_table(b: GraphBuilder) -> str:
    """Adds a look-up by position, as a decoder with a cache does for its one new token."""
    x = b.input("x", ["n", 4])
    count = b.op("Gather", b.op("Shape", x), b.ints(0))
    place = b.op("Sub", count, b.ints(4))  # from the end of the table if it is negative
    return b.op("Add", x, b.op("Gather", b.normal((40, 4), 1.0, "table"), place))


@pytest.mark.parametrize(
    "network", [_reduced, _cut_and_joined, _chosen, _position, _place_in_a_table]
)
def test_one_program_for_all_shapes(network: Callable[[GraphBuilder], str]) -> None:
    b = GraphBuilder("model", seed=0, opset=13)
    result = network(b)
    b.output(result, "result", None)
    sizes = [(4, 5), (7, 3), (1, 1), (33, 17), (1, 9), (5, 1), (2, 2)]
    check_one_program(b.build(), [{"n": n, "m": m} for n, m in sizes])


def test_inputs_that_disagree_are_refused_by_name() -> None:
    with compiled(encoder()) as executable, pytest.raises(InvalidInputError) as caught:
        executable.run(
            {"x": np.zeros((2, 7, 32), np.float32), "mask": np.zeros((2, 8), np.float32)}
        )
    assert "mask" in str(caught.value)
    assert "seq" in str(caught.value)


def test_memory_beyond_the_limits_is_refused() -> None:
    model = encoder()
    limits = Limits(arena_bytes=1 << 20)
    with byoc_mlir.compile(model, targets=(), limits=limits, threads=1) as executable:
        executable.run(random_inputs(model, dims={"batch": 2, "seq": 3}))
        with pytest.raises(LimitExceededError, match="arena"):
            executable.run(random_inputs(model, dims={"batch": 4, "seq": 600}))


def test_a_pickled_executable_compiles_again() -> None:
    model = decoder()
    with compiled(model) as executable:
        copy = pickle.loads(pickle.dumps(executable))
    check_shapes(copy, model, [{"batch": 1, "new": 2, "past": 3}])
    copy.close()


def test_the_report_says_which_node_needs_numbers() -> None:
    b = GraphBuilder("sampled", seed=0, opset=16)
    x, grid = b.input("x", ["n", 2, "h", 8]), b.input("grid", ["n", 3, 4, 2])
    b.output(b.op("Selu", b.op("GridSample", x, grid)), "y", [None] * 4)
    model = b.build()
    with compiled(model) as executable:
        check_shapes(executable, model, [{"n": 2, "h": 5}])
        assert len(fixed_programs(executable)) == 1
        text = str(executable.report())
    assert "a program for each set of shapes is compiled" in text
    assert "GridSample" in text


def test_defects_are_hidden_from_users_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("a defect")

    monkeypatch.setattr(dynamic, "partition", fail)
    model = encoder(width=8, heads=2, inner=16)
    inputs = random_inputs(model, dims={"batch": 2, "seq": 3})
    with compiled(model) as executable, pytest.raises(InternalError, match="a defect"):
        executable.run(inputs)
    monkeypatch.setenv("BYOC_STRICT", "off")
    with compiled(model) as executable:
        check_shapes(executable, model, [{"batch": 2, "seq": 3}])
        assert "a defect" in str(executable.report())


def test_outputs_are_written_into_the_callers_arrays() -> None:
    model = decoder()
    inputs = random_inputs(model, dims={"batch": 2, "new": 1, "past": 4})
    with compiled(model) as executable:
        expected = executable.run(inputs)
        keys = np.empty((2, 2, 5, 8), np.float32)
        found = executable.run(inputs, out={"k": keys})
        assert found["k"] is keys
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values)
        with pytest.raises(InvalidInputError, match=r"'k' must be float32\[2, 2, 5, 8\]"):
            executable.run(inputs, out={"k": keys[:, :, :4].copy()})
        past = keys.reshape(-1)[:128].reshape(2, 2, 4, 8)
        with pytest.raises(InvalidInputError, match="memory that an input has"):
            executable.run({**inputs, "past_k": past}, out={"k": keys})
