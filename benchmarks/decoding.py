"""Decoding with a language model token by token, compared with ONNX Runtime.

    python benchmarks/decoding.py                       f32 and 4 bits, a cache of 256 tokens
    python benchmarks/decoding.py --bits 0 8 --capacity 1024 --rounds 3
    python benchmarks/decoding.py --bits 4 --level 4 --width 2048 --layers 4 --prompt 256

Both engines get the same tokens, one after the other, in one process and on one thread; their steps
are interleaved, and both write their cache in place. Times are seconds of the processor. `step` is
the median of single tokens, `ratio` the median of the ratios of interleaved steps. `weights` are
the bytes that the compiled model keeps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import onnxruntime
from onnx import ModelProto

import byoc_mlir
from byoc_mlir.runtime.program import ObjectCode
from byoc_mlir.testing.networks import DecoderSizes, decoder
from byoc_mlir.testing.reference import largest_relative_error

Array = np.ndarray[Any, np.dtype[Any]]
Step = Callable[[Sequence[int], int], Array]
"""Function from new tokens and the number of earlier ones to the logits of the last token."""


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bits", type=int, nargs="+", default=[0, 4], help="of weights; 0: f32")
    parser.add_argument("--capacity", type=int, default=256, help="tokens that the cache holds")
    parser.add_argument("--prompt", type=int, default=64, help="tokens")
    parser.add_argument("--steps", type=int, default=64, help="single tokens behind the prompt")
    parser.add_argument("--rounds", type=int, default=3, help="how often all that is done")
    parser.add_argument("--level", type=int, default=0, help="accuracy_level of MatMulNBits")
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--width", type=int, default=512, help="4 shared heads from 2048 on")
    parser.add_argument("--targets", nargs="*", help="of compile; default: its own")
    options = parser.parse_args()
    print(
        "| weights | cache | step, ms: ours, ONNX Runtime, ratio | prompt, ms: ours, ONNX Runtime"
    )
    print("| weights kept, MB | largest error | other tokens |", end="\n\n")
    for bits in options.bits:
        heads, inner, vocabulary = options.width // 64, options.width * 3, options.width * 16
        shared = max(2, heads // 8)
        sizes = DecoderSizes(
            *(options.layers, options.width, heads, shared, 64, inner, vocabulary, options.capacity)
        )
        print(_row(bits, sizes, options))


def _row(bits: int, sizes: DecoderSizes, options: argparse.Namespace) -> str:
    model = decoder(sizes=sizes, bits=bits or None, accuracy_level=options.level)
    targets = None if options.targets is None else tuple(options.targets)
    found = Found()
    with byoc_mlir.compile(model, targets=targets, threads=1) as executable:
        engines = (_ours(executable, sizes), _peer(model, sizes))
        for seed in range(options.rounds + 1):
            tokens = np.random.default_rng(seed).integers(0, sizes.vocabulary, 1 << 12).tolist()
            found.add(engines, tokens, options.prompt, options.steps, is_counted=seed > 0)
        code = executable.program.code
        kept = sum(a.nbytes for a in code.weights.values()) if isinstance(code, ObjectCode) else 0
    return f"| {bits or 'f32'} | {sizes.capacity} | {found} | {kept / 1e6:.1f} | {found.accuracy} |"


@dataclass
class Found:
    """Seconds of both engines, ours first, and errors of their logits."""

    prompts: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    steps: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    errors: list[float] = field(default_factory=list[float])
    others: int = 0
    """Number of steps in which another token is the most probable one."""

    def add(
        self,
        engines: tuple[Step, Step],
        tokens: Sequence[int],
        prompt: int,
        steps: int,
        *,
        is_counted: bool,
    ) -> None:
        """Runs one prompt and the steps after it; the steps that compile are not counted."""
        ends = [prompt, *range(prompt + 1, prompt + 1 + steps)]
        starts = [0, *ends[:-1]]
        for start, end in zip(starts, ends, strict=True):
            seconds, logits = zip(
                *(_timed(engine, tokens[start:end], start) for engine in engines), strict=True
            )
            if is_counted:
                (self.steps if start else self.prompts).append(seconds)
                self.errors.append(largest_relative_error(*logits))
                self.others += int(logits[0].argmax() != logits[1].argmax())

    def __str__(self) -> str:
        ratio = median(ours / peer for ours, peer in self.steps)
        steps, prompts = (_milliseconds(times) for times in (self.steps, self.prompts))
        return f"{steps}, {ratio:.2f} | {prompts}"

    @property
    def accuracy(self) -> str:
        """Returns the accuracy of the logits of all steps: the largest error, and the number of
        other tokens.
        """
        return f"{max(self.errors):.1e} | {self.others} of {len(self.errors)}"


def _milliseconds(times: Sequence[tuple[float, float]]) -> str:
    ours, peer = (median(one) * 1e3 for one in zip(*times, strict=True))
    return f"{ours:.2f}, {peer:.2f}"


def _timed(engine: Step, tokens: Sequence[int], past: int) -> tuple[float, Array]:
    start = time.process_time()
    logits = engine(tokens, past)
    return time.process_time() - start, logits


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


def _peer(model: ModelProto, sizes: DecoderSizes) -> Step:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
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
