"""Python calls of a run on one row of text, which take longer than its native code."""

from __future__ import annotations

import sys
from types import FrameType

import numpy as np
from helpers.models import parsed

import byoc_mlir

_MOST = 32
"""Maximum number of calls of Python functions."""


def test_a_row_of_text_takes_few_calls() -> None:
    model = parsed(
        "(float[n, 1] age, string[n, 1] city) => (float[n, 2] y)",
        """
        code = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_floats = [1.0, 2.0]>
            (city)
        y = Concat <axis = 1> (age, code)""",
    )
    feeds = {"age": np.ones((1, 1), np.float32), "city": np.array([["b"]], object)}
    calls: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            calls.append(frame.f_code.co_name)

    with byoc_mlir.compile(model, threads=1) as executable:
        executable.run(feeds)
        executable.wait()
        executable.run(feeds)
        sys.setprofile(note)
        found = executable.run(feeds)
        sys.setprofile(None)
    assert found["y"].tolist() == [[1, 2]]
    assert len(calls) <= _MOST, calls
