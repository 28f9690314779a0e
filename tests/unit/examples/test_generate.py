"""The example that generates tokens prints as many as it is asked for, the same ones each time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from byoc_mlir.testing.networks import DecoderSizes, decoder

EXAMPLE = Path(__file__).parents[3] / "examples" / "generate.py"


def tokens(*arguments: str) -> list[int]:
    command = [sys.executable, EXAMPLE, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(token) for token in result.stdout.splitlines()[0].split()]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("generate") / "decoder.onnx"
    sizes = DecoderSizes(layers=1, vocabulary=50, capacity=16)
    onnx.save(decoder(sizes=sizes, family="qwen"), path)
    return str(path)


def test_the_most_probable_tokens_until_the_cache_is_full(model: str) -> None:
    found = tokens(model, "--prompt", "1,2,3,4", "--tokens", "100")
    assert len(found) == 13
    assert all(0 <= token < 50 for token in found)


def test_drawn_tokens_depend_on_the_seed_alone(model: str) -> None:
    draw = (model, "--tokens", "8", "--temperature", "2.0", "--seed")
    first = tokens(*draw, "1")
    assert len(first) == 8
    assert first == tokens(*draw, "1")
