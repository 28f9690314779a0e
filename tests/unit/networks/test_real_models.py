"""Models with data-dependent sizes, branches and counts, in several consecutive runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers.programs import generic_programs, is_symbolic
from onnx import ModelProto
from real_models import VOCABULARY, detector, encoder, voice_activity

import byoc_mlir
from byoc_mlir.compiler import pipeline
from byoc_mlir.runtime.execution import recent
from byoc_mlir.runtime.program import ObjectCode, Program
from byoc_mlir.testing.reference import Arrays, assert_agrees, run_onnxruntime

TARGETS = pytest.mark.parametrize("targets", [(), ("dnnl",)], ids=["host", "dnnl"])


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Returns the programs compiled since the test began."""
    programs: list[Program] = []
    build_program = pipeline.build_program

    def recorded(*arguments: Any) -> Program:
        programs.append(build_program(*arguments))
        return programs[-1]

    monkeypatch.setattr(pipeline, "build_program", recorded)
    return programs


def _sentences(batch: int, tokens: int) -> Arrays:
    rng = np.random.default_rng(100 * batch + tokens)
    lengths = rng.integers(1, tokens + 1, (batch, 1))
    return {
        "input_ids": rng.integers(0, VOCABULARY, (batch, tokens)),
        "attention_mask": (np.arange(tokens) < lengths).astype(np.int64),
    }


def _compile(model: ModelProto, targets: tuple[str, ...]) -> byoc_mlir.Executable:
    return byoc_mlir.compile(model, targets, threads=1, prune="off", fallback="allow")


@TARGETS
def test_sizes_in_a_row(
    targets: tuple[str, ...], compiled: list[Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recent, "CACHED_SHAPES", 2)
    model = encoder()
    with _compile(model, targets) as executable:
        assert not compiled
        for batch, tokens in ((1, 7), (3, 12), (1, 7), (2, 64)):
            inputs = _sentences(batch, tokens)
            assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs))
        if is_symbolic(executable) and generic_programs(executable):
            assert len(generic_programs(executable)) == 1  # a shape-polymorphic program
            assert not compiled
            return
        assert len(compiled) == 3  # (1, 7) once
        executable.run(_sentences(1, 7))
        assert len(compiled) == 3
        executable.run(_sentences(3, 12))  # dropped, since two sets of shapes are kept
        assert len(compiled) == 4


def test_a_shape_that_is_expected_is_compiled_before(compiled: list[Program]) -> None:
    with _compile(encoder(), ("dnnl",)) as executable:
        executable.warmup({"input_ids": (2, 5), "attention_mask": (2, 5)})
        assert len(compiled) == 1
        executable.run(_sentences(2, 5))
        assert len(compiled) == 1


def test_weights_do_not_depend_on_shapes(compiled: list[Program]) -> None:
    """Checks that other shapes use the same arrays: nothing is read, hashed or held in memory
    twice.
    """
    with _compile(encoder(), ("dnnl",)) as executable:
        for tokens in (8, 9):
            executable.warmup(dict.fromkeys(("input_ids", "attention_mask"), (2, tokens)))
    codes = [program.code for program in compiled]
    one, other = (code.weights for code in codes if isinstance(code, ObjectCode))
    shared = one.keys() & other.keys()
    assert sum(one[name].size for name in shared) > 20_000
    assert all(one[name] is other[name] for name in shared)


@pytest.mark.parametrize(
    ("targets", "fixed_chunks"), [((), False), (("dnnl",), True)], ids=["host", "dnnl-fixed"]
)
def test_voice_activity(
    targets: tuple[str, ...], fixed_chunks: bool, compiled: list[Program]
) -> None:
    model = voice_activity(fixed_chunks=fixed_chunks)
    rng = np.random.default_rng(5)
    with _compile(model, targets) as executable:
        for rate, samples, chunks in ((16000, 512, 4), (8000, 256, 3), (16000, 512, 2)):
            state = wanted_state = np.zeros((2, 2, 32), np.float32)
            sound = rng.standard_normal((chunks, 2, samples), dtype=np.float32)
            for chunk in sound:
                inputs = {"chunk": chunk, "state": state, "rate": np.array(rate)}
                found = executable.run(inputs)
                wanted = run_onnxruntime(model, inputs | {"state": wanted_state})
                assert_agrees(found, wanted)
                state, wanted_state = found["next_state"], wanted["next_state"]
            assert np.abs(state).max() > 0.05
    assert len(compiled) == (2 if targets else 0)  # the host has a program for all sizes


@TARGETS
def test_detector(targets: tuple[str, ...], compiled: list[Program]) -> None:
    model = detector()
    counts: list[int] = []
    with _compile(model, targets) as executable:
        for size, seed in ((32, 0), (32, 1), (40, 2), (32, 0)):
            rng = np.random.default_rng(seed)
            inputs = {"image": rng.standard_normal((1, 3, size, 32), dtype=np.float32)}
            found = executable.run(inputs)
            assert_agrees(found, run_onnxruntime(model, inputs))
            counts.append(len(found["boxes"]))
    assert counts[0] == counts[3]
    assert len(set(counts)) == 3
    # two sizes of images, three counts of boxes, unless the host has programs for all of them
    assert len(compiled) == (2 + 3 if targets else 0)
