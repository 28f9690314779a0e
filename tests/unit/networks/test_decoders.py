"""Language models step by step, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.compiler import dynamic, pipeline
from byoc_mlir.compiler.build import Build
from byoc_mlir.dialects.relay.control import CallOp
from byoc_mlir.dialects.symbols import symbol_of
from byoc_mlir.kernels.vectors import VectorUnit
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.testing.networks import DecoderSizes, decoder
from byoc_mlir.testing.reference import largest_relative_error

SIZES = DecoderSizes(layers=4)
"""With fewer layers, none would share a function."""

STEPS = 64
TOLERANCE = 1e-4

Arrays = Mapping[str, np.ndarray[Any, Any]]


class Peer:
    """ONNX Runtime with the interface of an executable."""

    def __init__(self, model: ModelProto):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        self._names = [output.name for output in self._session.get_outputs()]

    def run(self, inputs: Arrays) -> Arrays:
        outputs: list[Any] = list(self._session.run(None, dict(inputs)))
        return dict(zip(self._names, outputs, strict=True))


def empty_cache() -> dict[str, np.ndarray[Any, Any]]:
    shape = (1, SIZES.shared_heads, SIZES.capacity, SIZES.head_size)
    return {
        f"past_key_values.{layer}.{name}": np.zeros(shape, np.float32)
        for layer in range(SIZES.layers)
        for name in ("key", "value")
    }


def step_inputs(tokens: np.ndarray[Any, Any], past: int, *, places: bool) -> dict[str, Any]:
    last = past + len(tokens)
    found: dict[str, Any] = {
        "input_ids": tokens[None],
        "seqlens_k": np.array([last - 1], np.int32),
        "total_sequence_length": np.asarray(last, np.int32),
    }
    if places:
        found["position_ids"] = np.arange(past, last)[None]
    return found


@pytest.mark.parametrize(
    ("family", "bits", "prompt"), [("llama", 4, 16), ("qwen", None, 1), ("qwen", 8, 1)]
)
def test_teacher_forced_steps(
    family: Literal["llama", "qwen"], bits: int | None, prompt: int
) -> None:
    model = decoder(sizes=SIZES, family=family, bits=bits)
    tokens = np.random.default_rng(1).integers(0, SIZES.vocabulary, prompt + STEPS - 1)
    parts = [tokens[:prompt], *(tokens[n : n + 1] for n in range(prompt, len(tokens)))]
    peer, past = Peer(model), 0
    caches = [empty_cache(), empty_cache()]
    with byoc_mlir.compile(model, targets=()) as executable:
        for part in parts:
            inputs = step_inputs(part, past, places=family == "qwen")
            past += len(part)
            logits: list[np.ndarray[Any, Any]] = []
            for number, engine in enumerate((executable, peer)):
                outputs = engine.run({**inputs, **caches[number]})
                logits.append(outputs["logits"][0, -1])
                caches[number] = {
                    name.replace("present", "past_key_values"): array
                    for name, array in outputs.items()
                    if name != "logits"
                }
            check_step(*logits)


def test_layers_and_matmuls_share_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finds layers as one function before they are partitioned, and functions that serve matmuls of
    all sizes.
    """
    called: list[str] = []
    functions: list[str] = []

    def partition(build: Build) -> None:
        calls = [op for op in build.module.walk() if isinstance(op, CallOp)]
        called.extend(call.body.root_reference.data for call in calls)
        pipeline.partition(build)

    def optimise(build: Build) -> None:
        functions.extend(map(symbol_of, build.module.ops))
        pipeline.optimise(build)

    monkeypatch.setattr(dynamic, "partition", partition)
    monkeypatch.setattr(dynamic, "optimise", optimise)
    tokens = np.array([3, 1, 4])
    model = decoder(sizes=SIZES, bits=4)
    with byoc_mlir.compile(model, targets=(), cache=False) as executable:
        executable.run({**step_inputs(tokens, 0, places=False), **empty_cache()})
    assert called == ["layer_0"] * 2
    panel = VectorUnit.of(Cpu.host().features).panel
    assert sorted(name for name in functions if name.startswith("blockwise_4_bits")) == [
        f"blockwise_4_bits_32_one_zero_{part}"
        for part in ("few_order", "few_units_1", "many_order", f"many_units_{panel}")
    ]


def check_step(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any]) -> None:
    assert largest_relative_error(got, want) <= TOLERANCE
    second, first = np.sort(want)[-2:]
    if first - second > 2 * TOLERANCE * np.abs(want).max():
        assert got.argmax() == want.argmax()
