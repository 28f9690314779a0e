"""Samples of recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from byoc_mlir.dialects.relay.base import PyValue
from byoc_mlir.testing.samples.relay_ops.sample import Rest, Sample, Shape
from byoc_mlir.testing.samples.relay_ops.shapes import fixed

_STEPS, _BATCH, _HIDDEN = 4, 3, 5
_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def _lstm(directions: int, batch: int) -> Rest:
    state = (directions, batch, _HIDDEN)
    return fixed((directions, _HIDDEN, 4 * _HIDDEN), state, state)


def _gru(directions: int, batch: int) -> Rest:
    width = 3 * _HIDDEN
    state = (directions, batch, _HIDDEN)
    return fixed((directions, _HIDDEN, width), (directions, width), state)


def _layers(gates: int, rest: Mapping[str, Rest], **more: PyValue) -> Iterator[Sample]:
    """Yields a layer in each direction, with constant and with computed states and weights."""
    for direction, count in _DIRECTIONS.items():
        data: Shape = (_STEPS, count, _BATCH, gates * _HIDDEN)
        sample = Sample(data, rest[direction], {"direction": direction, **more})
        yield replace(sample, constants=True)
        yield sample


def _all_layers(gates: int, rest: Mapping[str, Rest], one: Rest) -> Iterator[Sample]:
    yield from _layers(gates, rest)
    data: Shape = (_STEPS, 1, _BATCH, gates * _HIDDEN)
    forward = rest["forward"]
    yield Sample((1, *data[1:]), forward, constants=True, note="one step")
    yield Sample((_STEPS, 1, 1, data[-1]), one, constants=True, note="one sequence")
    yield Sample(data, forward, ranges={0: (-30.0, 30.0)}, note="saturated gates")


_LSTM = {name: _lstm(count, _BATCH) for name, count in _DIRECTIONS.items()}
_GRU = {name: _gru(count, _BATCH) for name, count in _DIRECTIONS.items()}

RECURRENT_SAMPLES: Mapping[str, Sequence[Sample]] = {
    "nn.lstm": list(_all_layers(4, _LSTM, _lstm(1, 1))),
    "nn.gru": [
        *_all_layers(3, _GRU, _gru(1, 1)),
        *_layers(3, _GRU, linear_before_reset=True),
    ],
}
"""Samples by Relay name; the first sample of an op is its plainest."""
