"""Example that generates tokens: it prints the requested number, the same ones each time."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import onnx
import pytest

import byoc_mlir
from byoc_mlir.testing.networks import DecoderSizes, decoder

EXAMPLE = Path(__file__).parents[3] / "examples" / "generate.py"
MODEL = decoder(sizes=DecoderSizes(layers=1, vocabulary=50, capacity=16), family="qwen")


@pytest.fixture(scope="module")
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def executable() -> Iterator[byoc_mlir.Executable]:
    with byoc_mlir.compile(MODEL, targets=()) as found:
        yield found


def test_the_most_probable_tokens_until_the_cache_is_full(
    example: ModuleType, executable: byoc_mlir.Executable
) -> None:
    found = list(example.generate(executable, [1, 2, 3, 4], example.Choice(0.0, 1, 0)))
    assert len(found) == 13
    assert all(0 <= token < 50 for token in found)


def test_drawn_tokens_depend_on_the_seed_alone(
    example: ModuleType, executable: byoc_mlir.Executable
) -> None:
    drawn = [
        list(
            itertools.islice(
                example.generate(executable, [1, 2, 3, 4], example.Choice(2.0, 40, seed)), 8
            )
        )
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


def test_the_command(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    onnx.save(MODEL, tmp_path / "decoder.onnx")
    arguments = ["generate.py", str(tmp_path / "decoder.onnx"), "--prompt", "7", "--tokens", "4"]
    monkeypatch.setattr(sys, "argv", arguments)
    example.main()
    tokens, speed = capsys.readouterr().out.splitlines()
    assert len(tokens.split()) == 4
    assert speed.endswith("ms a token")


def test_a_folder_as_genai_reads_it(
    example: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = ["generate.py", str(tmp_path), "--temperature", "0.8", "--tokens", "4"]
    for more in (["--make"], []):
        monkeypatch.setattr(sys, "argv", [*arguments, *more])
        example.main()
    tokens, _ = capsys.readouterr().out.splitlines()
    assert len(tokens.split()) == 4
    assert {path.name for path in tmp_path.iterdir()} == {
        *("genai_config.json", "model.onnx", "model.onnx.data")
    }


def test_a_symbolic_cache_gets_room(example: ModuleType, tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(MODEL.SerializeToString())
    for values, name in ((model.graph.input, "past"), (model.graph.output, "total")):
        for info in values:
            if info.name.startswith(("past_key_values", "present")):
                info.type.tensor_type.shape.dim[2].dim_param = f"{name}_sequence_length"
    onnx.save(model, tmp_path / "model.onnx")
    expected = {"past_sequence_length": 64, "total_sequence_length": 64}
    assert example.cache_sizes(tmp_path / "model.onnx", 64) == expected
