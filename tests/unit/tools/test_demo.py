"""`byoc demo`: it reads a digit, and its network is as accurate as its description claims."""

from __future__ import annotations

import json

import numpy as np
import onnxruntime
import pytest

import byoc_mlir
from byoc_mlir.digits import MODEL, as_input, drawn, unseen
from byoc_mlir.tools.byoc import main
from byoc_mlir.tools.commands.demo import SEVEN


def test_at_least_97_percent_of_unseen_pictures_are_right() -> None:
    pictures, labels = unseen()
    assert pictures.shape == (450, 8, 8)
    executable = byoc_mlir.compile(MODEL)
    oracle = onnxruntime.InferenceSession(MODEL)
    answers: list[int] = []
    for picture in pictures:
        inputs = {"picture": as_input(picture)}
        (probabilities,) = executable.run(inputs)["probabilities"]
        (wanted,) = np.asarray(oracle.run(None, inputs)[0])
        np.testing.assert_allclose(probabilities, wanted, rtol=1e-4, atol=1e-6)
        answers.append(int(probabilities.argmax()))
    assert np.mean(np.array(answers) == labels) >= 0.97


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in MODEL.parent.glob("*.*")) < 200_000


def test_a_picture_is_drawn_with_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    shown = capsys.readouterr().out
    assert drawn(unseen()[0][SEVEN]) in shown
    assert "7 (99.8 %)" in shown
    assert "the writer meant 7" in shown
    assert "largest difference from onnxruntime" in shown
    assert "Conv" in shown


def test_a_document_has_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--picture", "3", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["answer"] == document["label"]
    assert document["largest_difference"] < 1e-5


def test_a_picture_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--picture", "450"]) == 1
    assert "there are 0 to 449" in capsys.readouterr().err
