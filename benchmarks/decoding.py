"""Decoding with a language model token by token, compared with other engines.

    python benchmarks/decoding.py                       f32 and 4 bits, a cache of 256 tokens
    python benchmarks/decoding.py --bits 0 8 --capacity 1024 --rounds 3
    python benchmarks/decoding.py --bits 4 --levels 0 4 --width 2048 --layers 22 --capacity 2048 \\
        --threads 2 --prompt 256 --positions 64 1900 --engines byoc onnxruntime llama.cpp

All engines get the same tokens, one after the other, in one process; their steps are interleaved,
and all write their cache in place. With one thread, times are seconds of the processor, with more
those of the clock. Times are medians, ratios medians of the ratios of interleaved steps. `others`
counts steps in which another token is the most probable one than in ours. `weights` are the bytes
that the compiled model keeps. `llama.cpp` has no levels: it computes products in int8.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from llama_cpp_engine import llama_cpp
from measure import PAUSE_SECONDS
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.runtime.program import ObjectCode
from byoc_mlir.testing.networks import DecoderSizes, decoder
from byoc_mlir.testing.reference import largest_relative_error

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[[Sequence[int], int], Array]
"""Function from new tokens and the number of earlier ones to the logits of the last token."""

_UNCOUNTED = 3
"""First steps at a position, which compile, or make their buffers."""


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bits", type=int, nargs="+", default=[0, 4], help="of weights; 0: f32")
    parser.add_argument("--capacity", type=int, default=256, help="tokens that the cache holds")
    parser.add_argument("--prompt", type=int, default=64, help="tokens")
    parser.add_argument("--steps", type=int, default=64, help="single tokens at each position")
    parser.add_argument("--positions", type=int, nargs="+", help="default: behind the prompt")
    parser.add_argument("--rounds", type=int, default=3, help="how often the prompt is read")
    parser.add_argument("--levels", type=int, nargs="+", default=[0], help="of MatMulNBits")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=512, help="4 shared heads from 2048 on")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--targets", nargs="*", help="of compile; default: its own")
    parser.add_argument("--engines", nargs="+", default=["byoc", "onnxruntime"])
    options = parser.parse_args()
    print("| weights | level | engine | what | ms | ours, ratio | largest error | others |")
    print("| --- | ---: | --- | --- " + "| ---: " * 4 + "|")
    for bits, level in product(options.bits, options.levels):
        heads, inner, vocabulary = options.width // 64, options.width * 3, options.width * 16
        shared = max(2, heads // 8)
        sizes = DecoderSizes(
            *(options.layers, options.width, heads, shared, 64, inner, vocabulary, options.capacity)
        )
        _measure(bits, level, sizes, options)


def _measure(bits: int, level: int, sizes: DecoderSizes, options: argparse.Namespace) -> None:
    model = decoder(sizes=sizes, bits=bits or None, accuracy_level=level)
    targets = None if options.targets is None else tuple(options.targets)
    with byoc_mlir.compile(model, targets=targets, threads=options.threads) as executable:
        made = {
            "byoc": lambda: _ours(executable, sizes),
            "onnxruntime": lambda: _peer(model, sizes, options.threads),
            "llama.cpp": lambda: llama_cpp(model, sizes, options.threads),
        }
        engines = {name: made[name]() for name in options.engines}
        run = Run(engines, sizes, time.process_time if options.threads == 1 else time.perf_counter)
        about = f"{bits or 'f32'} | {level}"
        _print(about, f"prompt of {options.prompt}", run.prompts(options.prompt, options.rounds))
        for position in options.positions or [options.prompt]:
            _print(about, f"step at {position}", run.steps(position, options.steps))
        code = executable.program.code
        kept = sum(a.nbytes for a in code.weights.values()) if isinstance(code, ObjectCode) else 0
        print(f"| {about} | byoc | weights, MB | {kept / 1e6:.1f} | | | |", flush=True)


@dataclass
class Found:
    """Seconds of an engine's calls, with their ratios and logits' errors beside our engine."""

    seconds: list[float] = field(default_factory=list[float])
    ratios: list[float] = field(default_factory=list[float])
    errors: list[float] = field(default_factory=list[float])
    others: int = 0


def _print(about: str, what: str, found: Mapping[str, Found]) -> None:
    for name, one in found.items():
        ours = f"{median(one.ratios):.2f} | {max(one.errors):.1e} | {one.others}"
        print(
            f"| {about} | {name} | {what} | {median(one.seconds) * 1e3:.2f} | {ours} |", flush=True
        )


class Run:
    """Calls of engines with the same tokens, interleaved.

    Args:
        engines: the engines; the others are compared with the first.
        clock: function that returns seconds.
    """

    def __init__(
        self, engines: Mapping[str, Step], sizes: DecoderSizes, clock: Callable[[], float]
    ):
        self._engines = engines
        self._clock = clock
        random = np.random.default_rng(0)
        self._tokens: list[int] = random.integers(0, sizes.vocabulary, sizes.capacity).tolist()
        self._end = 0
        """Number of tokens in the caches."""

    def prompts(self, length: int, rounds: int) -> Mapping[str, Found]:
        """Reads a prompt again and again; the first time is not counted."""
        self._call(0, length)
        found = self._new()
        for _ in range(rounds):
            self._call(0, length, found)
        return found

    def steps(self, position: int, count: int) -> Mapping[str, Found]:
        """Reads single tokens, behind those of a position or of the last call."""
        if position > self._end:
            self._call(self._end, position)
        found = self._new()
        for number in range(_UNCOUNTED + count):
            at = position + number
            self._call(at, at + 1, found if number >= _UNCOUNTED else None)
        return found

    def _new(self) -> Mapping[str, Found]:
        return {name: Found() for name in self._engines}

    def _call(self, start: int, end: int, found: Mapping[str, Found] | None = None) -> None:
        """Gives each engine the tokens from `start` to `end`; adds to `found`."""
        self._end = end
        first: tuple[float, Array] | None = None
        for name, engine in self._engines.items():
            time.sleep(PAUSE_SECONDS)
            before = self._clock()
            logits = engine(self._tokens[start:end], start)
            seconds = self._clock() - before
            first = first or (seconds, logits.copy())
            if found is None:
                continue
            found[name].seconds.append(seconds)
            found[name].ratios.append(first[0] / seconds)
            found[name].errors.append(largest_relative_error(logits, first[1]))
            found[name].others += int(logits.argmax() != first[1].argmax())


def _inputs(tokens: Sequence[int], past: int) -> dict[str, Array]:
    last = past + len(tokens)
    return {
        "input_ids": np.array([tokens]),
        "seqlens_k": np.array([last - 1], np.int32),
        "total_sequence_length": np.array(last, np.int32),
    }


def _caches(sizes: DecoderSizes) -> Mapping[str, Array]:
    shape = (1, sizes.shared_heads, sizes.capacity, sizes.head_size)
    names = [f"{layer}.{name}" for layer in range(sizes.layers) for name in ("key", "value")]
    return {name: np.zeros(shape, np.float32) for name in names}


def _ours(executable: byoc_mlir.Executable, sizes: DecoderSizes) -> Step:
    caches = _caches(sizes)
    past = {f"past_key_values.{name}": array for name, array in caches.items()}
    present = {f"present.{name}": array for name, array in caches.items()}

    def step(tokens: Sequence[int], count: int) -> Array:
        given = executable.run({**_inputs(tokens, count), **past}, out=present)
        return given["logits"][0, -1]

    return step


def _peer(model: ModelProto, sizes: DecoderSizes, threads: int) -> Step:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    binding = session.io_binding()
    for name, array in _caches(sizes).items():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(f"past_key_values.{name}", value)
        binding.bind_ortvalue_output(f"present.{name}", value)

    def step(tokens: Sequence[int], count: int) -> Array:
        for name, array in _inputs(tokens, count).items():
            binding.bind_cpu_input(name, array)
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        names = [output.name for output in session.get_outputs()]
        bound = dict(zip(_bound_order(names), binding.get_outputs(), strict=True))
        return bound["logits"].numpy()[0, -1]

    return step


def _bound_order(names: Sequence[str]) -> list[str]:
    """Returns the outputs in the order in which they were bound."""
    return [*(name for name in names if name != "logits"), "logits"]


if __name__ == "__main__":
    main()
