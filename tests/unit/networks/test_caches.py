"""Caches in place: outputs in the memory of the inputs that they extend."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from helpers.models import parsed
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import byoc_mlir
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.inference_session import InferenceSession, SessionOptions
from byoc_mlir.testing.networks import DecoderSizes, decoder

SIZES = DecoderSizes(capacity=512)
NAMES = [f"{layer}.{name}" for layer in range(SIZES.layers) for name in ("key", "value")]


def empty_cache() -> dict[str, np.ndarray[Any, Any]]:
    shape = (1, SIZES.shared_heads, SIZES.capacity, SIZES.head_size)
    return {name: np.zeros(shape, np.float32) for name in NAMES}


def inputs(tokens: list[int], past: int, cache: dict[str, Any]) -> dict[str, Any]:
    last = past + len(tokens)
    return {
        "input_ids": np.array([tokens]),
        "seqlens_k": np.array([last - 1], np.int32),
        "total_sequence_length": np.asarray(last, np.int32),
        **{f"past_key_values.{name}": array for name, array in cache.items()},
    }


@pytest.mark.parametrize("targets", [(), ("dnnl",)])
def test_steps_in_place_give_what_steps_apart_give(targets: tuple[str, ...]) -> None:
    apart, here, past = empty_cache(), empty_cache(), 0
    addresses = {name: array.ctypes.data for name, array in here.items()}
    with byoc_mlir.compile(decoder(sizes=SIZES), targets, prune="off") as executable:
        for part in ([3, 1, 4], [1], [5], [9]):
            want = executable.run(inputs(part, past, apart))
            apart = {name: want[f"present.{name}"] for name in NAMES}
            destinations = {f"present.{name}": array for name, array in here.items()}
            got = executable.run(inputs(part, past, here), out=destinations)
            past += len(part)
            np.testing.assert_array_equal(got["logits"], want["logits"])
            for name, array in here.items():
                assert got[f"present.{name}"] is array
                assert array.ctypes.data == addresses[name]
                np.testing.assert_array_equal(array, apart[name])
        step = inputs([2], past, here)
        tracemalloc.start()
        executable.run(step, out=destinations)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < here["0.key"].nbytes  # the memory for the cache is what was there before


def test_memory_that_is_not_the_same_is_refused() -> None:
    with byoc_mlir.compile(decoder(sizes=SIZES), targets=()) as executable:
        cache = empty_cache()
        with pytest.raises(InvalidInputError, match="in memory that an input has"):
            executable.run(inputs([1], 0, cache), out={"present.0.key": cache["0.value"]})
        wide = np.zeros(cache["0.key"].size + 8, np.float32)
        shape = cache["0.key"].shape
        cache["0.key"] = wide[:-8].reshape(shape)
        with pytest.raises(InvalidInputError, match="in memory that an input has"):
            executable.run(inputs([1], 0, cache), out={"present.0.key": wide[8:].reshape(shape)})


def scatter(reads_old: bool) -> ModelProto:
    text = """
    <ir_version: 10, opset_import: ["" : 24]>
    g (float[2, 8, 4] cache, float[2, 1, 4] update, int64[2] places)
      => (float[2, 8, 4] y, float z) {
      y = TensorScatter(cache, update, places)
      z = ReduceSum<keepdims = 0>(READ)
    }
    """
    return parser.parse_model(text.replace("READ", "cache" if reads_old else "y"))


def test_a_tensor_scatter_in_place() -> None:
    cache, update = np.zeros((2, 8, 4), np.float32), np.ones((2, 1, 4), np.float32)
    with byoc_mlir.compile(scatter(reads_old=False), targets=()) as executable:
        assert executable.program.aliases == {"y": "cache"}
        for place in range(3):
            fed = {
                "cache": cache,
                "update": update,
                "places": np.array([place, 7 - place], np.int64),
            }
            total = executable.run(fed, out={"y": cache})["z"]
            assert total == 8 * (place + 1)
    assert cache[0, :, 0].tolist() == [1] * 3 + [0] * 5
    assert cache[1, :, 0].tolist() == [0] * 5 + [1] * 3


@pytest.mark.parametrize("count", [1, 3, 8])
def test_a_ring_in_place(count: int) -> None:
    """Checks that new entries wrap around the end of the cache, in its memory."""
    model = parsed(
        f"(float[2, 3, 8, 4] c, float[2, 3, {count}, 4] u, int64[2] w) => (float[2, 3, 8, 4] y)",
        'y = TensorScatter <axis = 2, mode = "circular"> (c, u, w)',
        opset=24,
    )
    reference = ReferenceEvaluator(model)
    rng = np.random.default_rng(0)
    cache = rng.standard_normal((2, 3, 8, 4), np.float32)
    with byoc_mlir.compile(model, targets=()) as executable:
        assert executable.program.aliases == {"y": "c"}
        for places in ([0, 7], [6, 5], [3, 804]):  # the last is the count of a long text
            update = rng.standard_normal((2, 3, count, 4), np.float32)
            fed = {"c": cache, "u": update, "w": np.array(places, np.int64)}
            (want,) = reference.run(None, fed)
            assert executable.run(fed, out={"y": cache})["y"] is cache
            np.testing.assert_array_equal(cache, want)


def test_what_is_read_later_is_kept() -> None:
    """Checks a sum that reads the cache's old elements."""
    with byoc_mlir.compile(scatter(reads_old=True), targets=()) as executable:
        cache = np.ones((2, 8, 4), np.float32)
        fed = {"cache": cache, "update": cache[:, :1] * 5, "places": np.array([1, 2], np.int64)}
        out = {} if not executable.program.aliases else {"y": cache}
        assert executable.run(fed, out=out)["z"] == 64


def test_an_input_that_two_outputs_continue() -> None:
    model = parsed(
        "(float[1, 4, 2] c, float[1, 1, 2] u, float[1, 1, 2] v, int64[1] w) => (y, z)",
        "[first] y = TensorScatter (c, u, w) [second] z = TensorScatter (c, v, w)",
        opset=24,
    )
    with byoc_mlir.compile(model, targets=()) as executable:
        assert list(executable.program.aliases.values()) == ["c"]
        (last,) = executable.program.aliases
        cache = np.zeros((1, 4, 2), np.float32)
        fed = {
            "c": cache,
            "u": cache[:, :1] + 1,
            "v": cache[:, :1] + 2,
            "w": np.array([3], np.int64),
        }
        got = executable.run(fed, out={last: cache})
        assert got["y"][0, :, 0].tolist() == [0, 0, 0, 1]
        assert got["z"][0, :, 0].tolist() == [0, 0, 0, 2]


def growing(model: ModelProto) -> ModelProto:
    """Returns the model as exporters write it, with a cache that may grow."""
    for value in (*model.graph.input, *model.graph.output):
        for start, name in (("past", "past_sequence_length"), ("present", "total_sequence_length")):
            if value.name.startswith(start):
                value.type.tensor_type.shape.dim[2].dim_param = name
    return model


@pytest.mark.parametrize("grows", [False, True])
def test_a_cache_that_a_session_binds(grows: bool) -> None:
    """Checks that the cache's size is the model's, or the session's if the model's cache grows."""
    model, options = decoder(sizes=SIZES), SessionOptions()
    if grows:
        model = growing(model)
        for name in ("past_sequence_length", "total_sequence_length"):
            options.add_free_dimension_override_by_name(name, SIZES.capacity)
    session = InferenceSession(model.SerializeToString(), options)
    binding, cache = session.io_binding(), empty_cache()
    for name, array in cache.items():
        memory = ("cpu", 0, np.float32, array.shape, array.ctypes.data)
        binding.bind_input(f"past_key_values.{name}", *memory)
        binding.bind_output(f"present.{name}", *memory)
    binding.bind_output("logits")
    for past in range(3):
        for name, array in inputs([past], past, {}).items():
            binding.bind_cpu_input(name, array)
        session.run_with_iobinding(binding)
    for array in cache.values():
        assert np.abs(array[0, 0]).any(axis=1).tolist() == [True] * 3 + [False] * 509
