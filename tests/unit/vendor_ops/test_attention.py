"""Attention and rotary embeddings of `com.microsoft`, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from nodes import Arrays, check_node, node_model, run_imported
from onnx import helper

import byoc_mlir
from byoc_mlir.errors import InvalidModelError, UnsupportedModelError
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

Results = dict[str, np.ndarray[Any, Any]]

RNG = np.random.default_rng(0)
TOLERANCE = 1e-5


def floats(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


def bits(*shape: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return RNG.integers(0, 2, shape).astype(np.int32)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize(
    ("shape", "places", "attributes"),
    [
        ((2, 3, 16), [[3, 4, 5], [1, 2, 3]], {}),
        ((2, 3, 16), [2], {}),
        ((2, 2, 3, 8), [2], {}),
        ((2, 2, 3, 12), [2], {"num_heads": 2, "rotary_embedding_dim": 8}),
        ((2, 3, 24), [[3, 4, 5], [1, 2, 3]], {"num_heads": 2, "rotary_embedding_dim": 8}),
    ],
)
def test_rotary_embedding(
    shape: tuple[int, ...], places: list[Any], attributes: dict[str, Any], interleaved: int
) -> None:
    inputs = {
        "x": floats(*shape),
        "p": np.array(places, np.int64),
        "c": floats(10, 4),
        "s": floats(10, 4),
    }
    check_node("RotaryEmbedding", inputs, interleaved=interleaved, **attributes)


@pytest.mark.parametrize(
    ("more", "attributes"),
    [
        ({}, {}),
        ({}, {"unidirectional": 1, "scale": 0.3}),
        ({"m": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)}, {}),
        ({"m": np.array([[1, 1, 1, 0], [1, 1, 0, 0]], np.int32)}, {"mask_filter_value": -3.0}),
        ({"m": np.array([3, 2], np.int32)}, {"unidirectional": 1}),
        ({"m": np.array([3, 4, 0, 1], np.int32)}, {}),
        ({"m": bits(2, 4, 4)}, {}),
        ({"m": bits(2, 4, 4) | np.eye(4, dtype=np.int32)}, {}),
        ({"m": None, "p": floats(2, 2, 2, 3, 4)}, {"unidirectional": 1}),
        ({"m": bits(2, 7), "p": floats(2, 2, 2, 3, 4)}, {"unidirectional": 1}),
        ({"m": None, "p": None, "a": floats(1, 2, 4, 4)}, {}),
        ({"m": None, "p": None, "a": floats(2, 1, 4, 4)}, {}),
    ],
)
def test_attention(more: Arrays, attributes: dict[str, Any]) -> None:
    inputs = {"x": floats(2, 4, 12), "w": floats(12, 24), "b": floats(24), **more}
    outputs = ("y", "present") if more.get("p") is not None else ("y",)
    check_node(
        "Attention",
        inputs,
        outputs,
        constants=("w", "b"),
        num_heads=2,
        tolerance=_tolerance(more.get("m")),
        **attributes,
    )


def _tolerance(mask: np.ndarray[Any, Any] | None) -> float:
    """Returns a larger tolerance for masks of which a row has nothing: -10,000 is added to all of
    its scores, which leaves them three digits.
    """
    is_empty = mask is not None and mask.ndim > 1 and not mask.any(axis=-1).all()
    return 1e-3 if is_empty else TOLERANCE


def test_attention_with_values_of_their_own_size() -> None:
    inputs = {"x": floats(2, 4, 12), "w": floats(12, 20), "b": floats(20)}
    sizes = [8, 8, 4]
    check_node("Attention", inputs, num_heads=2, qkv_hidden_sizes=sizes, tolerance=TOLERANCE)


def test_attention_with_a_square_mask() -> None:
    """Checks against the mask's valid rows and columns, since ONNX Runtime refuses square masks on
    CPUs.
    """
    square = bits(2, 1, 9, 9)
    inputs = {"x": floats(2, 4, 12), "w": floats(12, 24), "b": floats(24), "m": square}
    past = {"p": floats(2, 2, 2, 3, 4)}
    rows = {**inputs, "m": square[:, 0, 3:7, :7], **past}
    want = run_onnxruntime(node_model("Attention", rows, ("y", "p2"), num_heads=2), rows)
    whole = {**inputs, **past}
    got = run_imported(node_model("Attention", whole, ("y", "p2"), num_heads=2), whole)
    assert_agrees(got, want, TOLERANCE)


QUERY, KEY, VALUE = floats(2, 4, 8), floats(2, 5, 8), floats(2, 5, 12)
CROSS: Arrays = {"q": QUERY, "k": KEY, "v": VALUE}
SELF: Arrays = {"q": QUERY, "k": floats(2, 4, 8), "v": floats(2, 4, 8)}
PAST: Arrays = {"pk": floats(2, 2, 3, 4), "pv": floats(2, 2, 3, 4)}


@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        (CROSS, {}),
        (CROSS, {"scale": 0.2}),
        ({**CROSS, "b": floats(28)}, {}),
        ({**CROSS, "b": None, "m": np.array([3, 5], np.int32)}, {}),
        ({**CROSS, "b": None, "m": bits(2, 5)}, {"mask_filter_value": -2.0}),
        ({**CROSS, "b": None, "m": bits(2, 4, 5)}, {}),
        ({**CROSS, "b": None, "m": None, "a": floats(1, 1, 4, 5)}, {}),
        (SELF, {"unidirectional": 1}),
        ({"q": QUERY, "k": floats(2, 2, 5, 4), "v": floats(2, 2, 5, 4), "b": floats(24)}, {}),
        ({**SELF, "b": floats(24), "m": None, "a": None, **PAST}, {"unidirectional": 1}),
        ({**SELF, "b": None, "m": bits(2, 7), "a": None, **PAST}, {}),
    ],
)
def test_multi_head_attention(inputs: Arrays, attributes: dict[str, Any]) -> None:
    outputs = ("y", "present_k", "present_v") if "pk" in inputs else ("y",)
    check_node(
        "MultiHeadAttention", inputs, outputs, num_heads=2, tolerance=TOLERANCE, **attributes
    )


def test_packed_queries_keys_and_values() -> None:
    """Checks against separate inputs, since ONNX Runtime unpacks them on GPUs only."""
    whole = {"q": floats(2, 4, 2, 3, 4)}
    apart = {
        name: np.ascontiguousarray(whole["q"][:, :, :, place]).reshape(2, 4, 8)
        for place, name in enumerate("qkv")
    }
    want = run_onnxruntime(node_model("MultiHeadAttention", apart, num_heads=2), apart)
    got = run_imported(node_model("MultiHeadAttention", whole, num_heads=2), whole)
    assert_agrees(got, want, TOLERANCE)
    half = {"q": apart["q"], "k": np.ascontiguousarray(whole["q"][:, :, :, 1:])}
    got = run_imported(node_model("MultiHeadAttention", half, num_heads=2), half)
    assert_agrees(got, want, TOLERANCE)


ROTARY: Arrays = {"cos": floats(32, 8), "sin": floats(32, 8)}
NO_ROTARY: Arrays = {"cos": None, "sin": None}


def check_group_query(
    batch: int,
    new: int,
    capacity: int | None,
    lengths: list[int],
    *,
    size: int = 16,
    packed: bool = False,
    more: Arrays | None = None,
    **attributes: Any,
) -> None:
    shape = (batch, 2, capacity, size) if capacity is not None else None
    inputs: Arrays = {
        "q": floats(batch, new, (8 if packed else 4) * size),
        "k": None if packed else floats(batch, new, 2 * size),
        "v": None if packed else floats(batch, new, 2 * size),
        "pk": None if shape is None else floats(*shape),
        "pv": None if shape is None else floats(*shape),
        "lengths": np.array(lengths, np.int32) - 1,
        "total": np.array([max(lengths)], np.int32),
        **(more or {}),
    }
    outputs, heads = ("y", "present_k", "present_v"), {"num_heads": 4, "kv_num_heads": 2}
    model = node_model(
        "GroupQueryAttention", inputs, outputs, constants=("total",), **heads, **attributes
    )
    fed = {name: array for name, array in inputs.items() if array is not None and name != "total"}
    assert_same_tokens(run_imported(model, inputs), run_onnxruntime(model, fed), lengths)


def assert_same_tokens(got: Results, want: Results, lengths: list[int]) -> None:
    """Asserts agreement as `assert_agrees` does, without the cache after an entry's tokens, which
    is undefined.
    """
    for outputs in (got, want):
        for name in ("present_k", "present_v"):
            for entry, length in zip(outputs[name], lengths, strict=True):
                entry[:, length:] = 0
    assert_agrees(got, want, TOLERANCE)


@pytest.mark.values
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("batch", "new", "capacity", "lengths"),
    [
        (1, 5, None, [5]),
        (2, 5, None, [5, 5]),
        (1, 5, 0, [5]),
        (1, 5, 16, [5]),
        (1, 1, 6, [7]),
        (1, 3, 6, [9]),
        (1, 1, 16, [7]),
        (2, 1, 6, [7, 5]),
        (2, 1, 16, [7, 5]),
    ],
)
def test_group_query_caches(
    batch: int, new: int, capacity: int | None, lengths: list[int], packed: bool
) -> None:
    check_group_query(batch, new, capacity, lengths, packed=packed, more=ROTARY, do_rotary=1)


@pytest.mark.parametrize(
    ("more", "attributes"),
    [
        ({}, {"local_window_size": 3}),
        ({}, {"softcap": 2.0}),
        ({}, {"smooth_softmax": 1}),
        ({}, {"scale": 0.2}),
        ({**NO_ROTARY, "p": None, "a": floats(1, 4, 3, 9)}, {"softcap": 2.0}),
        ({**NO_ROTARY, "p": None, "a": None, "sink": floats(4)}, {}),
        ({**ROTARY, "p": np.array([[5, 9, 2]], np.int64)}, {"do_rotary": 1}),
        (ROTARY, {"do_rotary": 1, "rotary_interleaved": 1}),
        (ROTARY, {"do_rotary": 1, "size": 32}),
    ],
)
def test_group_query_attributes(more: Arrays, attributes: dict[str, Any]) -> None:
    check_group_query(1, 3, 6, [9], more=more, **attributes)


def test_group_query_windows_and_places_of_a_batch() -> None:
    check_group_query(2, 1, 6, [7, 5], local_window_size=3)
    check_group_query(1, 6, None, [6], local_window_size=3)
    check_group_query(1, 3, None, [3], causal=0)
    places = {**ROTARY, "p": np.array([[5], [2]], np.int64)}
    check_group_query(2, 1, 6, [7, 5], more=places, do_rotary=1)
    prompt = {**ROTARY, "p": np.array([[5, 9, 2]], np.int64)}
    check_group_query(1, 3, None, [3], more=prompt, do_rotary=1)


def test_a_decoding_step_compiled() -> None:
    inputs = {
        "q": floats(2, 1, 64),
        "k": floats(2, 1, 32),
        "v": floats(2, 1, 32),
        "pk": floats(2, 2, 8, 16),
        "pv": floats(2, 2, 8, 16),
        "lengths": np.array([6, 4], np.int32),
        "total": np.array([7], np.int32),
        **ROTARY,
    }
    model = node_model(
        "GroupQueryAttention",
        inputs,
        ("y", "present_k", "present_v"),
        constants=("total", "cos", "sin"),
        num_heads=4,
        kv_num_heads=2,
        do_rotary=1,
    )
    fed: dict[str, Any] = {
        name: array for name, array in inputs.items() if name not in ("total", "cos", "sin")
    }
    with byoc_mlir.compile(model, targets=()) as executable:
        assert_same_tokens(executable.run(fed), run_onnxruntime(model, fed), [7, 5])


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(
    ("batch", "new", "capacity", "lengths"),
    [(1, 1, 8, [5]), (1, 3, 8, [7]), (1, 5, 8, [5]), (2, 1, 8, [7, 5]), (2, 4, 8, [4, 4])],
)
def test_a_cache_that_keeps_its_size_needs_no_length_to_be_compiled(
    batch: int, new: int, capacity: int, lengths: list[int], causal: int
) -> None:
    inputs = {
        "q": floats(batch, new, 64),
        "k": floats(batch, new, 32),
        "v": floats(batch, new, 32),
        "pk": floats(batch, 2, capacity, 16),
        "pv": floats(batch, 2, capacity, 16),
        "lengths": np.array(lengths, np.int32) - 1,
        "total": np.array([max(lengths)], np.int32),
        **ROTARY,
    }
    model = node_model(
        "GroupQueryAttention",
        inputs,
        ("y", "present_k", "present_v"),
        constants=("cos", "sin"),
        num_heads=4,
        kv_num_heads=2,
        do_rotary=1,
        causal=causal,
        local_window_size=3 if causal else -1,
    )
    fed = {name: array for name, array in inputs.items() if name not in ROTARY}
    want = run_onnxruntime(model, fed)
    for output in model.graph.output[1:]:
        shape = helper.make_tensor_type_proto(1, (batch, 2, capacity, 16))
        output.type.CopyFrom(shape)
    assert_same_tokens(run_imported(model, fed), want, lengths)


@pytest.mark.parametrize(
    ("batch", "new", "more", "attributes"),
    [
        (1, 1, {}, {}),
        (2, 1, {}, {"softcap": 2.0}),
        (1, 3, {}, {"causal": 0}),
        (1, 1, {}, {"local_window_size": 40}),
        (1, 1, {**NO_ROTARY, "p": None, "a": None, "sink": floats(4)}, {}),
        (1, 2, {**NO_ROTARY, "p": None, "a": floats(1, 4, 2, 160)}, {}),
    ],
)
def test_as_much_of_a_large_cache_as_is_filled(
    batch: int, new: int, more: Arrays, attributes: dict[str, Any]
) -> None:
    capacity = 160
    inputs: Arrays = {
        "q": floats(batch, new, 64),
        "k": floats(batch, new, 32),
        "v": floats(batch, new, 32),
        "pk": floats(batch, 2, capacity, 16),
        "pv": floats(batch, 2, capacity, 16),
        "lengths": np.zeros(batch, np.int32),
        "total": np.zeros(1, np.int32),
        **more,
    }
    outputs, heads = ("y", "present_k", "present_v"), {"num_heads": 4, "kv_num_heads": 2}
    model = node_model("GroupQueryAttention", inputs, outputs, **heads, **attributes)
    for output in model.graph.output[1:]:
        output.type.CopyFrom(helper.make_tensor_type_proto(1, (batch, 2, capacity, 16)))
    fed = {name: array for name, array in inputs.items() if array is not None}
    found = RNG.integers(new, capacity + 1, 6).tolist()
    with byoc_mlir.compile(model, targets=()) as executable:
        for longest in (new + 1, 32, 33, 159, 160, *found):
            lengths = [longest, *RNG.integers(new, longest + 1, batch - 1).tolist()]
            fed["lengths"][:], fed["total"][:] = np.array(lengths) - 1, longest
            bias = {"a": fed["a"][..., :longest]} if "a" in fed else {}
            peer = {**inputs, **bias}
            theirs = node_model("GroupQueryAttention", peer, outputs, **heads, **attributes)
            want = run_onnxruntime(theirs, {**fed, **bias})
            assert_same_tokens(executable.run(fed), want, lengths)
            assert_same_tokens(run_imported(model, fed), want, lengths)


@pytest.mark.parametrize("attributes", [{}, {"softcap": 2.0, "smooth_softmax": 1}, {"causal": 0}])
def test_one_program_for_a_prompt_and_for_tokens_behind_others(attributes: dict[str, Any]) -> None:
    new, capacity = 3, 8
    inputs = {
        "q": floats(1, new, 64),
        "k": floats(1, new, 32),
        "v": floats(1, new, 32),
        "pk": floats(1, 2, capacity, 16),
        "pv": floats(1, 2, capacity, 16),
        "lengths": np.array([0], np.int32),
        "total": np.array([0], np.int32),
    }
    outputs = ("y", "present_k", "present_v")
    sizes = {"num_heads": 4, "kv_num_heads": 2}
    model = node_model("GroupQueryAttention", inputs, outputs, **sizes, **attributes)
    for output in model.graph.output[1:]:
        output.type.CopyFrom(helper.make_tensor_type_proto(1, (1, 2, capacity, 16)))
    with byoc_mlir.compile(model, targets=()) as executable:
        for total in (capacity - 1, new):
            inputs["lengths"][:], inputs["total"][:] = total - 1, total
            if total == new:  # which attends to itself alone
                inputs["pk"][:], inputs["pv"][:] = np.nan, np.nan
            want = run_onnxruntime(model, inputs)
            assert_same_tokens(executable.run(inputs), want, [total])
            assert_same_tokens(run_imported(model, inputs), want, [total])


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "reason"),
    [
        ("Attention", {"x": floats(2, 4, 12), "w": floats(12, 24)}, {"do_rotary": 1}, "do_rotary"),
        (
            "Attention",
            {"x": floats(2, 4, 12), "w": floats(12, 24)},
            {"qkv_hidden_sizes": [8, 8]},
            r"qkv_hidden_sizes is \[8, 8\], accepted are three sizes",
        ),
        ("MultiHeadAttention", {**CROSS}, {"unidirectional": 1}, "accepted are equal numbers"),
        ("MultiHeadAttention", {"q": QUERY, "k": KEY}, {}, "accepted are ranks 3, 3, 3"),
        (
            "MultiHeadAttention",
            {**CROSS, "b": None, "m": bits(8)},
            {},
            "the mask has shape .* accepted is",
        ),
    ],
)
def test_refusals(op_type: str, inputs: Arrays, attributes: dict[str, Any], reason: str) -> None:
    model = node_model(op_type, inputs, num_heads=2, **attributes)
    with pytest.raises((UnsupportedModelError, InvalidModelError), match=reason):
        byoc_mlir.compile(model, targets=())
