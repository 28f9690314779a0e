"""Integers near the ends of int64 in attributes and operands, between guard pages.

This is a sample; `python tests/helpers/integer_ends.py` runs all cases.
"""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from byoc_mlir_fuzz.campaign import Campaign
from byoc_mlir_fuzz.case import Case
from byoc_mlir_fuzz.report import summary
from helpers.models import model_of, node

sys.path.append(str(Path(__file__).parents[2] / "helpers"))
from integer_ends import ENDS, cases, settings

SEED, EVERY, SECONDS = 36, 483, 60.0
X = np.arange(24, dtype=np.float32).reshape(4, 6)


@pytest.mark.parametrize("targets", [(), ("dnnl",)], ids=["host", "dnnl"])
def test_a_sample_of_all_ops(targets: tuple[str, ...]) -> None:
    sample = islice(cases(SEED + len(targets)), 0, None, EVERY)
    tally = Campaign(settings(targets)).run(sample, SECONDS)
    assert tally.kinds
    assert not tally.failures(), summary(tally, mutated=False)


def _slices() -> list[Case]:
    """Yields slices with steps, starts and ends at the ends of int64, of symbolic sizes."""
    found: list[Case] = []
    for step in (end for end in ENDS if end):
        # backward, ONNX Runtime takes the largest stop for none, which is the smallest one's part
        stops = ((0, ENDS[-1]),) if step > 0 else ()
        for start, stop in (*stops, (ENDS[-1], ENDS[0]), (5, ENDS[0])):
            operands = {"s": [start], "e": [stop], "a": [1], "t": [step]}
            nodes = [node("Slice", "x s e a t", name="n")]
            model = model_of(nodes, {"x": ["n", "m"]}, operands, opset=13)
            name = f"{start}:{stop}:{step}"
            found.append(Case(name, model.SerializeToString(), ({"x": X}, {"x": X[:, :1]})))
    return found


def test_slices_of_symbolic_sizes() -> None:
    tally = Campaign(settings(())).run(_slices()[::4], SECONDS)
    assert not tally.failures(), summary(tally, mutated=False)
    assert not tally.refusals(), summary(tally, mutated=False)
