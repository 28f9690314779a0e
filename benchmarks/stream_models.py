"""Streams by name: a model with dynamic shapes, and the sizes of its requests in order."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
from onnx import ModelProto
from settled import Inputs, settled

from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.detector import detector
from byoc_mlir.testing.networks.encoder import encoder, symbolised
from byoc_mlir.testing.networks.growing import growing_decoder
from byoc_mlir.testing.networks.sequences import recogniser, synthesiser
from byoc_mlir.testing.reference import random_inputs

Sizes = Mapping[str, int]
"""Sizes of the symbols."""

_REPEATS = 2
"""Number of requests of earlier sizes for each new one."""


@dataclass(frozen=True)
class Stream:
    """Model, and the sizes of its requests."""

    build: Callable[[], ModelProto]
    sizes: Callable[[random.Random, int], Sequence[Sizes]]
    """Function that draws further sizes; the same seed gives the same ones."""
    in_order: bool = False
    """True if each request depends on the one before, as tokens do; then the whole stream is
    repeated.
    """
    selects: bool = False
    """True if outputs are selected by comparisons; then `settled` draws the requests, away from
    thresholds.
    """


def _between(**ranges: Sequence[int]) -> Callable[[random.Random, int], Sequence[Sizes]]:
    """Returns a function that draws sizes from the range of each symbol, different ones as far as
    possible.
    """

    def drawn(rng: random.Random, count: int) -> Sequence[Sizes]:
        found: dict[tuple[int, ...], None] = {}
        for _ in range(100 * count):
            if len(found) < count:
                found[tuple(rng.choice(values) for values in ranges.values())] = None
        return [dict(zip(ranges, sizes, strict=True)) for sizes in found]

    return drawn


def _tokens(_: random.Random, count: int) -> Sequence[Sizes]:
    """Returns the sizes of a prompt, followed by single tokens."""
    prompt = 32
    steps = [{"batch": 1, "seq": 1, "past": prompt + step} for step in range(count - 1)]
    return [{"batch": 1, "seq": prompt, "past": 0}, *steps]


def _others(_: random.Random, count: int) -> Sequence[Sizes]:
    """Returns requests that differ in their values only."""
    return [{"request": number} for number in range(count)]


def _images(name: str, **sizes: Sequence[int]) -> Stream:
    axes = {"image": {0: "batch", 2: "height", 3: "width"}}
    return Stream(lambda: symbolised(NETWORKS[name](), axes), _between(**sizes))


def _lstm_tagger() -> ModelProto:
    return symbolised(NETWORKS["lstm2"](), {"features": {0: "steps", 1: "batch"}})


_SIDES = range(128, 257, 32)

STREAMS: Mapping[str, Stream] = {
    "perceptron": Stream(
        lambda: symbolised(NETWORKS["mlp3"](), {"input": {0: "batch"}}),
        _between(batch=range(1, 65)),
    ),
    "encoder": Stream(
        lambda: encoder(width=384, heads=12, layers=6),
        _between(batch=range(1, 5), seq=range(8, 129)),
    ),
    "resnet18": _images("resnet18", batch=range(1, 3), height=_SIDES, width=_SIDES),
    "mobilenet_v2": _images("mobilenet_v2", batch=range(1, 5), height=_SIDES, width=_SIDES),
    "unet": _images("unet", batch=[1], height=_SIDES, width=_SIDES),
    "lstm_tagger": Stream(_lstm_tagger, _between(steps=range(8, 97), batch=range(1, 5))),
    "decoder": Stream(growing_decoder, _tokens, in_order=True),
    "detector": Stream(detector, _others, selects=True),
    "recogniser": Stream(recogniser, _between(batch=[1], width=range(64, 401, 4))),
    "synthesiser": Stream(synthesiser, _between(length=range(10, 100))),
}


@dataclass(frozen=True)
class StreamFiles:
    """Files of a stream."""

    name: str
    model: Path
    inputs: tuple[Path, ...]
    """Inputs of each of the different requests."""
    order: tuple[int, ...]
    """Order of the requests, by index."""


def write_stream(name: str, number: int, folder: Path) -> StreamFiles:
    """Writes the model of a stream and `number` different requests."""
    stream, rng = STREAMS[name], random.Random(0)
    model = stream.build()
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    sizes = stream.sizes(rng, number)
    inputs: list[Path] = []
    for request in _requests(stream, model, path, sizes):
        inputs.append(folder / f"{name}-{len(inputs)}.npz")
        np.savez(inputs[-1], allow_pickle=False, **request)
    return StreamFiles(name, path, tuple(inputs), _order(len(sizes), stream.in_order, rng))


def _requests(
    stream: Stream, model: ModelProto, path: Path, sizes: Sequence[Sizes]
) -> Iterable[Inputs]:
    if stream.selects:
        return islice(settled(path, (random_inputs(model, seed) for seed in count())), len(sizes))
    return (random_inputs(model, seed, dims) for seed, dims in enumerate(sizes))


def _order(count: int, in_order: bool, rng: random.Random) -> tuple[int, ...]:
    if in_order:
        return (*range(count), *range(count))
    order: list[int] = []
    for number in range(count):
        order.append(number)
        order += (rng.randrange(number + 1) for _ in range(_REPEATS))
    return tuple(order)
