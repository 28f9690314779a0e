"""Generation of tokens with a decoder, each printed when it is known.

python examples/generate.py [MODEL.onnx] --prompt 3,14,15 --tokens 32 [--temperature 0.8 --top 40]

The model must have a cache of fixed size, as `byoc_mlir.testing.networks.decoder` builds it, which
is used without a file. Without a temperature the most probable token is taken.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

import byoc_mlir
from byoc_mlir.testing.networks import DecoderSizes, decoder

Array = npt.NDArray[Any]


class Choice:
    """Choice of the next token."""

    def __init__(self, temperature: float, top: int, seed: int):
        self._temperature = temperature
        self._top = top
        self._rng = np.random.default_rng(seed)

    def __call__(self, logits: Array) -> int:
        """Returns the most probable token, or one of the `top`, drawn by its probability."""
        if not self._temperature:
            return int(logits.argmax())
        places = np.argsort(logits)[-self._top :]
        weights = np.exp((logits[places] - logits.max()) / self._temperature)
        return int(self._rng.choice(places, p=weights / weights.sum()))


def generate(
    executable: byoc_mlir.Executable, prompt: Sequence[int], choice: Choice
) -> Iterator[int]:
    """Yields tokens after the prompt, until the cache, which is written in place, is full."""
    cache = {
        info.name: np.zeros(
            [size if isinstance(size, int) else 1 for size in info.shape], np.float32
        )
        for info in executable.inputs
        if info.name.startswith("past_key_values.")
    }
    present = {name.replace("past_key_values", "present"): array for name, array in cache.items()}
    capacity = min(array.shape[2] for array in cache.values())
    new, count = list(prompt), 0
    while count + len(new) <= capacity:
        count += len(new)
        inputs = {
            "input_ids": np.array([new]),
            "seqlens_k": np.array([count - 1], np.int32),
            "total_sequence_length": np.array(count, np.int32),
            "position_ids": np.arange(count - len(new), count)[None],
        }
        wanted = {info.name: inputs[info.name] for info in executable.inputs if info.name in inputs}
        outputs = executable.run({**wanted, **cache}, out=present)
        new = [choice(outputs["logits"][0, -1])]
        yield new[0]


def main() -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?", help="a decoder whose cache has a fixed size")
    parser.add_argument("--prompt", default="3,14,15", help="tokens, separated by commas")
    parser.add_argument("--tokens", type=int, default=32, help="how many to generate")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 for the most probable")
    parser.add_argument("--top", type=int, default=40, help="how many tokens to draw from")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    options = parser.parse_args()
    sizes = DecoderSizes(layers=2, width=256, head_size=64, inner=512, vocabulary=1024)
    model = onnx.load(options.model) if options.model else decoder(sizes=sizes, bits=4)

    prompt = [int(token) for token in options.prompt.split(",")]
    choice = Choice(options.temperature, options.top, options.seed)
    with byoc_mlir.compile(model) as executable:
        times = [time.perf_counter()]
        for number, token in enumerate(generate(executable, prompt, choice), 1):
            times.append(time.perf_counter())
            print(token, end=" ", flush=True)
            if number == options.tokens:
                break
    print()
    if len(times) > 3:
        steps = np.diff(times)[2:]  # the prompt and the first step are compiled when they come
        print(f"{np.median(steps) * 1e3:.2f} ms a token")


if __name__ == "__main__":
    main()
