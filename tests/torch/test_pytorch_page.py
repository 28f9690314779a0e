"""The code of docs/pytorch.md runs, block after block."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "pytorch.md"


def test_its_code_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


def test_its_code_for_scikit_learn_runs() -> None:
    pytest.importorskip("skl2onnx")
    (block,) = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    exec(block, {})
