"""Generation of tokens with a decoder, each printed when it is known.

python examples/generate.py [MODEL] --prompt 3,14,15 --tokens 32 [--temperature 0.8 --top 40]
python examples/generate.py FOLDER --make

The model is a file, or a folder as onnxruntime-genai reads it: `genai_config.json` names the model,
whose weights are in a file beside it. `--make` writes a small one. A symbolic cache gets room for
`--room` tokens. Without a model, `byoc_mlir.testing.networks.decoder` builds one; without a
temperature the most probable token is taken.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

import byoc_mlir
from byoc_mlir.testing.networks import DecoderSizes, decoder

Array = npt.NDArray[Any]

CACHE_SIZES = ("past_sequence_length", "total_sequence_length")
"""Names of the cache's symbolic sizes, as exporters write them."""


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


def small_model() -> onnx.ModelProto:
    """Builds a decoder of two layers, with random weights of 4 bits."""
    sizes = DecoderSizes(layers=2, width=256, head_size=64, inner=512, vocabulary=1024)
    return decoder(sizes=sizes, bits=4)


def make_folder(folder: Path) -> None:
    """Writes a small decoder as onnxruntime-genai reads it, with its weights in another file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx.data").unlink(missing_ok=True)
    onnx.save_model(
        small_model(),
        folder / "model.onnx",
        save_as_external_data=True,
        location="model.onnx.data",
    )
    config = {"model": {"type": "llama", "decoder": {"filename": "model.onnx"}}}
    (folder / "genai_config.json").write_text(json.dumps(config, indent=2))


def model_file(path: Path) -> Path:
    """Returns the model of a folder, or the file itself."""
    if not path.is_dir():
        return path
    config = json.loads((path / "genai_config.json").read_text())
    return path / config["model"]["decoder"]["filename"]


def cache_sizes(path: Path, room: int) -> dict[str, int]:
    """Returns the size for each symbolic size of the model's caches."""
    graph = onnx.load(path, load_external_data=False).graph
    shapes = [info.type.tensor_type.shape for info in (*graph.input, *graph.output)]
    names = {dim.dim_param for shape in shapes for dim in shape.dim}
    return {name: room for name in CACHE_SIZES if name in names}


def main() -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?", help="a decoder, or its folder")
    parser.add_argument("--make", action="store_true", help="write a small model to the folder")
    parser.add_argument("--room", type=int, default=512, help="tokens that a symbolic cache holds")
    parser.add_argument("--prompt", default="3,14,15", help="tokens, separated by commas")
    parser.add_argument("--tokens", type=int, default=32, help="how many to generate")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 for the most probable")
    parser.add_argument("--top", type=int, default=40, help="how many tokens to draw from")
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn")
    options = parser.parse_args()
    if options.make:
        make_folder(Path(options.model or "decoder"))
        return
    path = None if options.model is None else model_file(Path(options.model))
    model = small_model() if path is None else path
    room = {} if path is None else cache_sizes(path, options.room)

    prompt = [int(token) for token in options.prompt.split(",")]
    choice = Choice(options.temperature, options.top, options.seed)
    with byoc_mlir.compile(model, sizes=room) as executable:
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
