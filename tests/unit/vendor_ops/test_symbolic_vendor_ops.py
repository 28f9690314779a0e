"""Ops of `com.microsoft` with dynamic shapes: one program serves all, with ONNX Runtime's
results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from helpers import models
from helpers.programs import fixed_programs, generic_programs, is_symbolic
from onnx import ModelProto, TensorProto, helper

import byoc_mlir
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.tensors import Array
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

HEADS, SHARED, SIZE, WIDTH = 4, 2, 16, 32
Arrays = dict[str, Array]


def model_of(
    node: onnx.NodeProto | Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[Sequence[int | str], int]],
    outputs: Mapping[str, tuple[Sequence[int | str], int]],
    constants: Mapping[str, Array] | None = None,
) -> ModelProto:
    nodes = [node] if isinstance(node, onnx.NodeProto) else list(node)
    given, made = (
        {n: helper.make_tensor_value_info(n, kind, shape) for n, (shape, kind) in some.items()}
        for some in (inputs, outputs)
    )
    return models.model_of(nodes, given, constants, made, opset=17)


def node_of(op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> Any:
    return helper.make_node(op, inputs, outputs, domain="com.microsoft", **attributes)


def random(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def compiled(model: ModelProto) -> byoc_mlir.Executable:
    executable = byoc_mlir.compile(model, targets=(), threads=1)
    assert is_symbolic(executable)
    return executable


def check_one_program(model: ModelProto, all_inputs: Sequence[Arrays]) -> None:
    with compiled(model) as executable:
        for inputs in all_inputs:
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert len(generic_programs(executable)) == 1
        assert len(fixed_programs(executable)) == 0


F32, I32, I64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


def grouped(room: str | int, **attributes: Any) -> ModelProto:
    """Returns GroupQueryAttention with caches of `room` tokens as inputs and outputs."""
    cache = (["batch", SHARED, room, SIZE], F32)
    more = ["cos", "sin"] if attributes.get("do_rotary") else []
    rng = np.random.default_rng(3)
    return model_of(
        node_of(
            "GroupQueryAttention",
            ["q", "k", "v", "past_k", "past_v", "lasts", "total", *more],
            ["y", "new_k", "new_v"],
            num_heads=HEADS,
            kv_num_heads=SHARED,
            **attributes,
        ),
        {
            "q": (["batch", "tokens", HEADS * SIZE], F32),
            "k": (["batch", "tokens", SHARED * SIZE], F32),
            "v": (["batch", "tokens", SHARED * SIZE], F32),
            "past_k": cache,
            "past_v": cache,
            "lasts": (["batch"], I32),
            "total": ([], I32),
        },
        {"y": (["batch", "tokens", HEADS * SIZE], F32), "new_k": cache, "new_v": cache},
        {name: random(rng, 300, SIZE // 2) for name in more},
    )


def step(batch: int, new: int, lasts: Sequence[int], room: int, seed: int = 0) -> Arrays:
    """Returns the inputs for new tokens; `lasts` has the position of the last token of each
    entry."""
    rng = np.random.default_rng(seed)
    caches = {name: random(rng, batch, SHARED, room, SIZE) for name in ("past_k", "past_v")}
    return {
        "q": random(rng, batch, new, HEADS * SIZE),
        "k": random(rng, batch, new, SHARED * SIZE),
        "v": random(rng, batch, new, SHARED * SIZE),
        **caches,
        "lasts": np.array(lasts, np.int32),
        "total": np.array(max(lasts) + 1, np.int32),
    }


@pytest.mark.values
@pytest.mark.parametrize("room", [40, 160])
@pytest.mark.parametrize(
    "attributes", [{}, {"do_rotary": 1}, {"local_window_size": 3}, {"smooth_softmax": 1}]
)
def test_prompts_and_steps_with_a_cache_of_a_fixed_size(
    room: int, attributes: dict[str, Any]
) -> None:
    model = grouped(room, **attributes)
    steps = [
        step(1, 5, [4], room),
        step(1, 1, [9], room),
        step(1, 3, [20], room),
        step(2, 4, [3, 3], room),
        step(3, 1, [9, 30, 1], room),
        step(1, 1, [room - 1], room),
        step(1, room, [room - 1], room),
    ]
    with compiled(model) as executable:
        for inputs in steps:
            got, expected = executable.run(inputs), run_onnxruntime(model, inputs)
            np.testing.assert_allclose(got["y"], expected["y"], rtol=1e-4, atol=1e-5)
            for entry, last in enumerate(inputs["lasts"]):  # what is behind is anything
                for name in ("new_k", "new_v"):
                    filled = (entry, slice(None), slice(0, last + 1))
                    np.testing.assert_array_equal(got[name][filled], expected[name][filled])
        assert len(generic_programs(executable)) == 1
        assert len(fixed_programs(executable)) == 0


def test_positions_that_a_model_gives() -> None:
    """Checks that positions of a prompt follow its first one, whatever the others are."""
    model = grouped(40, do_rotary=1)
    model.graph.node[0].input.append("places")
    info = helper.make_tensor_value_info("places", I64, ["batch", "tokens"])
    model.graph.input.append(info)
    rng, all_inputs = np.random.default_rng(0), list[Arrays]()
    for batch, new, last in [(1, 5, 4), (2, 5, 4), (1, 1, 7), (2, 1, 7), (1, 3, 9)]:
        places = rng.integers(0, 300, (batch, new))
        all_inputs.append({**step(batch, new, [last] * batch, 40), "places": places})
    with compiled(model) as executable:
        for inputs in all_inputs:
            got, expected = executable.run(inputs), run_onnxruntime(model, inputs)
            np.testing.assert_allclose(got["y"], expected["y"], rtol=1e-4, atol=1e-5)
        assert len(generic_programs(executable)) == 1


def test_a_cache_is_written_in_place() -> None:
    model, inputs = grouped(160), step(2, 1, [9, 30], 160)
    with compiled(model) as executable:
        expected = executable.run(inputs)
        kept = {"new_k": inputs["past_k"], "new_v": inputs["past_v"]}
        for name, array in executable.run(inputs, out=kept).items():
            np.testing.assert_array_equal(array, expected[name])
            assert name == "y" or array is kept[name]


def test_what_does_not_fit_into_a_cache() -> None:
    with compiled(grouped(40)) as executable:
        executable.run(step(1, 2, [39], 40))
        with pytest.raises(InvalidInputError, match=r"total_sequence_length is 41; .* 0 to 40"):
            executable.run(step(1, 2, [40], 40))
        message = "batch entries with several new tokens behind others is 2; accepted are 0 to 1"
        with pytest.raises(InvalidInputError, match=message):
            executable.run(step(2, 2, [9, 9], 40))
        short = step(1, 2, [9], 40) | {"total": np.array(1, np.int32)}
        with pytest.raises(InvalidInputError, match="total_sequence_length less tokens is -1"):
            executable.run(short)


def growing(batch: str | int) -> ModelProto:
    """Returns a model as exporters write it: the mask determines the number of tokens, and caches
    grow.
    """
    rng = np.random.default_rng(3)
    constants = {"one": np.array([1], np.int64), "axis": np.array(1, np.int64)}
    old, new = ([batch, SHARED, size, SIZE] for size in ("past", "all"))
    return model_of(
        [
            helper.make_node("ReduceSum", ["mask", "one"], ["counts"], keepdims=0),
            helper.make_node("Sub", ["counts", "one"], ["wide"]),
            helper.make_node("Cast", ["wide"], ["lasts"], to=I32),
            helper.make_node("Shape", ["mask"], ["sizes"]),
            helper.make_node("Gather", ["sizes", "axis"], ["count"]),
            helper.make_node("Cast", ["count"], ["total"], to=I32),
            *grouped("past", do_rotary=1).graph.node,
        ],
        {
            "q": ([batch, "tokens", HEADS * SIZE], F32),
            "k": ([batch, "tokens", SHARED * SIZE], F32),
            "v": ([batch, "tokens", SHARED * SIZE], F32),
            "past_k": (old, F32),
            "past_v": (old, F32),
            "mask": ([batch, "all"], I64),
        },
        {
            "y": ([batch, "tokens", HEADS * SIZE], F32),
            "new_k": (new, F32),
            "new_v": (new, F32),
        },
        constants | {name: random(rng, 300, SIZE // 2) for name in ("cos", "sin")},
    )


def grown(batch: int, new: int, past: int) -> Arrays:
    inputs = step(batch, new, [past + new - 1] * batch, past)
    names = ("q", "k", "v", "past_k", "past_v")
    mask = np.ones((batch, past + new), np.int64)
    return {name: inputs[name] for name in names} | {"mask": mask}


@pytest.mark.parametrize(("batch", "programs"), [(1, 1), ("batch", 2)])
def test_a_cache_that_grows(batch: str | int, programs: int) -> None:
    """Checks one entry, whose new tokens follow all others, and several, for which prompts must be
    told apart.
    """
    model = growing(batch)
    sizes = [(1, 5, 0), (1, 1, 5), (1, 1, 6), (1, 9, 0), (1, 4, 9), (1, 1, 150), (1, 130, 0)]
    sizes += [] if batch == 1 else [(2, 5, 0), (2, 1, 5), (3, 1, 7)]
    with compiled(model) as executable:
        for each in sizes:
            inputs = grown(*each)
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        assert len(generic_programs(executable)) == programs
        assert len(fixed_programs(executable)) == 0


def multi_head(*more: str, outputs: int = 1, **attributes: Any) -> ModelProto:
    shapes: dict[str, tuple[Sequence[int | str], int]] = {
        "q": (["batch", "queries", WIDTH], F32),
        "k": (["batch", "keys", WIDTH], F32),
        "v": (["batch", "keys", WIDTH], F32),
        "bias": ([3 * WIDTH], F32),
        "padding": (["batch", "keys"], I32),
    }
    names = ["q", "k", "v", "bias", "padding"]
    given = [name if name in ("q", "k", "v", *more) else "" for name in names]
    results = {"y": (["batch", "queries", WIDTH], F32)}
    return model_of(
        node_of("MultiHeadAttention", given, list(results), num_heads=HEADS, **attributes),
        {name: shapes[name] for name in given if name},
        results,
    )


@pytest.mark.parametrize("more", [(), ("bias",), ("bias", "padding")])
def test_attention_of_many_heads(more: tuple[str, ...]) -> None:
    rng, all_inputs = np.random.default_rng(0), list[Arrays]()
    for batch, queries, keys in [(2, 3, 5), (1, 7, 4), (3, 1, 9)]:
        inputs = {
            "q": random(rng, batch, queries, WIDTH),
            "k": random(rng, batch, keys, WIDTH),
            "v": random(rng, batch, keys, WIDTH),
            "bias": random(rng, 3 * WIDTH),
            "padding": (np.arange(keys) < rng.integers(1, keys + 1, (batch, 1))).astype(np.int32),
        }
        all_inputs.append({name: inputs[name] for name in ("q", "k", "v", *more)})
    check_one_program(multi_head(*more), all_inputs)


def optimised_encoder(mask: Sequence[str]) -> ModelProto:
    """Returns embeddings, attention and a skip, as ONNX Runtime's optimiser writes them."""
    rng = np.random.default_rng(1)
    shapes = {
        "words": (50, WIDTH),
        "places": (64, WIDTH),
        "gamma": (WIDTH,),
        "beta": (WIDTH,),
        "weights": (WIDTH, 3 * WIDTH),
        "bias": (3 * WIDTH,),
    }
    nodes = [
        node_of(
            "EmbedLayerNormalization",
            ["ids", "", "words", "places", "", "gamma", "beta"],
            ["x", "count"],
        ),
        node_of(
            "Attention",
            ["x", "weights", "bias", "mask"],
            ["a"],
            num_heads=HEADS,
            unidirectional=len(mask) - 1,
        ),
        node_of("SkipLayerNormalization", ["a", "x", "gamma", "beta"], ["s"]),
        node_of("FastGelu", ["s"], ["y"]),
    ]
    return model_of(
        nodes,
        {"ids": (["batch", "tokens"], I32), "mask": (mask, I32)},
        {"y": (["batch", "tokens", WIDTH], F32)},
        {name: random(rng, *shape) for name, shape in shapes.items()},
    )


@pytest.mark.parametrize("mask", [["batch"], ["batch", "tokens"]])
def test_an_optimised_encoder(mask: list[str]) -> None:
    rng, all_inputs = np.random.default_rng(0), list[Arrays]()
    for batch, tokens in [(2, 5), (1, 9), (3, 33), (1, 1)]:
        ends = rng.integers(1, tokens + 1, batch).astype(np.int32)
        seen = ends if len(mask) == 1 else (np.arange(tokens) < ends[:, None]).astype(np.int32)
        ids = rng.integers(0, 50, (batch, tokens)).astype(np.int32)
        all_inputs.append({"ids": ids, "mask": seen})
    check_one_program(optimised_encoder(mask), all_inputs)


@pytest.mark.parametrize(("bits", "inner", "units"), [(4, 64, 40), (8, 48, 32), (4, 80, 48)])
def test_weights_in_blocks(bits: int, inner: int, units: int) -> None:
    """Checks one row, few rows, whole tiles of many, and each remainder."""
    rng, block = np.random.default_rng(bits), 16
    blocks = -(-inner // block)
    codes = rng.integers(0, 256, (units, blocks, block * bits // 8)).astype(np.uint8)
    scales = rng.uniform(0.01, 0.1, units * blocks).astype(np.float32)
    points = rng.integers(0, 256, units * -(-blocks * bits // 8)).astype(np.uint8)
    model = model_of(
        node_of(
            "MatMulNBits", ["x", "w", "s", "p"], ["y"], K=inner, N=units, bits=bits, block_size=16
        ),
        {"x": (["batch", "tokens", inner], F32)},
        {"y": (["batch", "tokens", units], F32)},
        {"w": codes, "s": scales, "p": points},
    )
    rows = [(1, 1), (2, 1), (1, 3), (2, 2), *((1, tokens) for tokens in range(5, 13)), (3, 20)]
    check_one_program(model, [{"x": random(rng, *shape, inner)} for shape in rows])


def test_rows_of_a_table_in_blocks() -> None:
    rng = np.random.default_rng(0)
    model = model_of(
        node_of("GatherBlockQuantized", ["w", "ids", "s"], ["y"], bits=4, block_size=16),
        {"ids": (["batch", "tokens"], I64)},
        {"y": (["batch", "tokens", 32], F32)},
        {
            "w": rng.integers(0, 256, (20, 16)).astype(np.uint8),
            "s": rng.uniform(0.01, 0.1, (20, 2)).astype(np.float32),
        },
    )
    shapes = [(1, 1), (2, 3), (1, 7)]
    check_one_program(model, [{"ids": rng.integers(0, 20, shape)} for shape in shapes])
