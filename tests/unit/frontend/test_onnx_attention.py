"""ONNX's own Attention, against ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from helpers.models import info, model_of
from helpers.programs import generic_programs, is_symbolic
from numpy.typing import NDArray
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

Arrays = Mapping[str, NDArray[Any]]

RNG = np.random.default_rng(0)
NAMES = ("q", "k", "v", "mask", "past_k", "past_v", "filled")
CAPACITY, SIZE = 160, 16


def floats(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


def bools(*shape: int) -> NDArray[np.bool_]:
    return RNG.random(shape) < 0.7


def attention(
    inputs: Arrays,
    outputs: Sequence[str] = ("y",),
    opset: int = 25,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    **attributes: Any,
) -> ModelProto:
    """Returns a model of one node with these inputs, which are named as `NAMES`."""
    described = {name: info(name, array) for name, array in inputs.items()}
    for name, shape in (shapes or {}).items():
        kind = described[name].type.tensor_type.elem_type
        described[name] = helper.make_tensor_value_info(name, kind, shape)
    names = [name if name in inputs else "" for name in NAMES[: None if opset > 23 else -1]]
    made = helper.make_node("Attention", names, outputs, "n", **attributes)
    return model_of([made], described, opset=opset)


def by_onnx(model: ModelProto, inputs: Arrays) -> Arrays:
    names = [output.name for output in model.graph.output]
    with np.errstate(all="ignore"):
        results: Any = ReferenceEvaluator(model).run(None, dict(inputs))
    return dict(zip(names, results, strict=True))


def check(model: ModelProto, inputs: Arrays) -> None:
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_agrees(executable.run(inputs), by_onnx(model, inputs), 1e-5)


def cache(batch: int, new: int, heads: int = 4, shared: int = 2) -> dict[str, NDArray[Any]]:
    """Returns queries and a cache, without the number of its valid tokens."""
    return {
        "q": floats(batch, heads, new, SIZE),
        "k": floats(batch, shared, CAPACITY, SIZE),
        "v": floats(batch, shared, CAPACITY, SIZE),
        "filled": np.zeros(batch, np.int64),
    }


def rows_of_heads(inputs: Arrays) -> dict[str, NDArray[Any]]:
    """Returns the same inputs with the heads merged into the last axis."""
    return {
        name: np.ascontiguousarray(array.swapaxes(1, 2)).reshape(*array.shape[:3:2], -1)
        if name in ("q", "k", "v")
        else array
        for name, array in inputs.items()
    }


@pytest.mark.parametrize(
    ("batch", "new", "mask", "attributes"),
    [
        (1, 1, None, {"is_causal": 1}),
        (2, 1, None, {}),
        (2, 3, None, {"is_causal": 1, "softcap": 2.0}),
        (1, 3, bools(3, CAPACITY), {"scale": 0.3}),
        (2, 2, floats(2, 1, 2, CAPACITY), {"softcap": 2.0}),
        (2, 1, None, {"left_window_size": 40}),
        (1, 4, None, {"right_window_size": 1, "q_num_heads": 4, "kv_num_heads": 2}),
    ],
)
def test_as_much_of_a_large_cache_as_is_filled(
    batch: int, new: int, mask: NDArray[Any] | None, attributes: dict[str, Any]
) -> None:
    inputs = cache(batch, new)
    if "q_num_heads" in attributes:
        inputs = rows_of_heads(inputs)
    if mask is not None:
        inputs["mask"] = mask
    model = attention(inputs, **attributes)
    axis = inputs["k"].ndim - 2
    found = RNG.integers(1, CAPACITY, 3).tolist()
    with byoc_mlir.compile(model, targets=()) as executable:
        for longest in (0, 1, 32, 33, CAPACITY, *found):
            others = RNG.integers(0, longest + 1, batch - 1).tolist()
            inputs["filled"][:] = [longest, *others]
            behind = np.arange(CAPACITY) >= -(-max(longest, 1) // 32) * 32
            unread = np.moveaxis(np.zeros_like(inputs["k"]), axis, -1)
            unread[..., behind] = np.nan
            unread = np.moveaxis(unread, -1, axis)
            got = executable.run({**inputs, "k": inputs["k"] + unread, "v": inputs["v"] + unread})
            assert_agrees(got, by_onnx(model, inputs), 1e-5)


def test_more_than_there_is_room_for_is_all_and_less_than_none_is_none() -> None:
    inputs = cache(2, 1)
    model = attention(inputs)
    with byoc_mlir.compile(model, targets=()) as executable:
        for filled in ([CAPACITY + 7, 3], [-1, -5]):
            inputs["filled"][:] = filled
            assert_agrees(executable.run(inputs), by_onnx(model, inputs), 1e-5)


@pytest.mark.pairs
@pytest.mark.parametrize("opset", [24, 25])
@pytest.mark.parametrize("mask", [bools(2, 1, 3, 70), floats(3, 70)])
@pytest.mark.parametrize("attributes", [{}, {"is_causal": 1}, {"qk_matmul_output_mode": 2}])
def test_a_mask_that_is_shorter_than_the_cache(
    opset: int, mask: NDArray[Any], attributes: dict[str, Any]
) -> None:
    inputs = {**cache(2, 3), "mask": mask}
    inputs["filled"][:] = [70, 41]
    outputs = ("y", "", "", "scores") if "qk_matmul_output_mode" in attributes else ("y",)
    check(attention(inputs, outputs, opset, **attributes), inputs)


@pytest.mark.values
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("opset", [23, 25])
def test_what_is_kept_for_the_next_call_and_scores(opset: int, mode: int) -> None:
    inputs = {
        "q": floats(2, 3, 24),
        "k": floats(2, 3, 8),
        "v": floats(2, 3, 6),
        "mask": bools(3, 8),
        "past_k": floats(2, 2, 5, 4),
        "past_v": floats(2, 2, 5, 3),
    }
    inputs["mask"][1] = False  # a query that sees nothing
    model = attention(
        inputs,
        ("y", "present_k", "present_v", "scores"),
        opset,
        is_causal=1,
        q_num_heads=6,
        kv_num_heads=2,
        qk_matmul_output_mode=mode,
    )
    check(model, inputs)


@pytest.mark.parametrize("keys", [1, 5])
def test_doubles_for_softmax_alone(keys: int) -> None:
    inputs = {"q": floats(1, 2, 1, 4), "k": floats(1, 2, keys, 4), "v": floats(1, 2, keys, 4)}
    check(attention(inputs, is_causal=1, softmax_precision=11), inputs)


@pytest.mark.parametrize(("queries", "keys"), [(0, 5), (3, 0), (1, 1)])
def test_few_queries_and_keys(queries: int, keys: int) -> None:
    inputs = {
        "q": floats(1, 2, queries, 4),
        "k": floats(1, 2, keys, 4),
        "v": floats(1, 2, keys, 4),
        "filled": np.array([keys]),
    }
    model = attention(inputs)
    with byoc_mlir.compile(model, targets=()) as executable:
        want = np.zeros((1, 2, queries, 4), np.float32)
        got = executable.run(inputs)["y"]
        np.testing.assert_array_equal(
            got, np.broadcast_to(inputs["v"], want.shape) if keys == 1 else want
        )


def test_scores_as_they_are_before_they_are_bent() -> None:
    """Checks against ONNX Runtime, since ONNX's reference evaluator returns the scores after the
    softcap.
    """
    inputs = {"q": floats(1, 2, 3, 4), "k": floats(1, 2, 5, 4), "v": floats(1, 2, 5, 4)}
    model = attention(inputs, ("y", "", "", "scores"), 23, softcap=0.5)
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-5)


def test_one_program_for_all_sizes() -> None:
    shapes = {
        "q": ["batch", 4, "new", SIZE],
        "k": ["batch", 2, "keys", SIZE],
        "v": ["batch", 2, "keys", SIZE],
        "mask": ["batch", 1, "new", "keys"],
        "filled": ["batch"],
    }
    inputs = {**cache(2, 3), "mask": bools(2, 1, 3, CAPACITY)}
    model = attention(inputs, shapes=shapes, is_causal=1)
    with byoc_mlir.compile(model, targets=()) as executable:
        assert is_symbolic(executable)
        for batch, new, keys in ((2, 3, 200), (1, 1, 133), (3, 5, 160)):
            fed = {
                "q": floats(batch, 4, new, SIZE),
                "k": floats(batch, 2, keys, SIZE),
                "v": floats(batch, 2, keys, SIZE),
                "mask": bools(batch, 1, new, keys),
                "filled": RNG.integers(0, keys + 1, batch),
            }
            assert_agrees(executable.run(fed), by_onnx(model, fed), 1e-5)
        assert is_symbolic(executable)
        assert len(generic_programs(executable)) == 1


@pytest.mark.values
@pytest.mark.parametrize("keys", [150, "keys"])
@pytest.mark.parametrize("causal", [0, 1])
def test_as_much_of_a_cache_as_is_filled_where_sizes_are_symbols(
    keys: int | str, causal: int
) -> None:
    shapes = {
        "q": ["batch", 4, "new", SIZE],
        "k": ["batch", 2, keys, SIZE],
        "v": ["batch", 2, keys, SIZE],
        "filled": ["batch"],
    }
    model = attention({**cache(2, 3)}, shapes=shapes, is_causal=causal)
    with byoc_mlir.compile(model, targets=()) as executable:
        for batch, new, most in ((2, 3, 150), (1, 1, 150), (3, 5, 201)):
            capacity = most if isinstance(keys, str) else keys
            fed = {
                "q": floats(batch, 4, new, SIZE),
                "k": floats(batch, 2, capacity, SIZE),
                "v": floats(batch, 2, capacity, SIZE),
                "filled": RNG.integers(0, 40, batch),
            }
            for longest in (capacity, 65, 64, 1):
                fed["filled"][0] = longest
                behind = max(-(-longest // 32), 2) * 32
                fed["k"][:, :, behind:] = fed["v"][:, :, behind:] = 0
                want = by_onnx(model, fed)
                fed["k"][:, :, behind:] = fed["v"][:, :, behind:] = np.nan
                assert_agrees(executable.run(fed), want, 1e-5)
        assert is_symbolic(executable)
        assert len(generic_programs(executable)) == 1


@pytest.mark.parametrize(
    ("more", "attributes", "reason"),
    [
        ({"k": floats(2, 3, CAPACITY, SIZE)}, {}, r"4, 3 and 2 heads; accepted are equal numbers"),
        ({"mask": bools(1, CAPACITY + 1)}, {}, "attn_mask is for 161 keys, but there are 160"),
        ({"mask": floats(CAPACITY).astype(np.float64)}, {}, "of float64, accepted are bool and"),
        (
            {"past_k": floats(2, 2, 5, SIZE), "past_v": floats(2, 2, 5, SIZE)},
            {},
            "past_key and nonpad_kv_seqlen must not be given together",
        ),
        ({"past_k": floats(2, 2, 5, SIZE)}, {}, "past_key and past_value must be given together"),
        ({}, {"qk_matmul_output_mode": 4}, "qk_matmul_output_mode is 4, accepted are 0 to 3"),
    ],
)
def test_refusals(more: Arrays, attributes: dict[str, Any], reason: str) -> None:
    model = attention({**cache(2, 1), **more}, **attributes)
    with pytest.raises(InvalidModelError, match=reason):
        byoc_mlir.compile(model, targets=())
