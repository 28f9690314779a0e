"""Losses: operands are refused whose shapes their bodies would broadcast."""

from __future__ import annotations

from itertools import product

import onnx
import pytest

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.frontend import import_model

LOSSES = ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss")
BAD = (
    ("9,9,1", "9,1", "9,9,1", "the weights have shape"),
    ("3,5", "3", "4", "the weights have shape"),
    ("3,5", "3", "1", "the weights have shape"),
    ("3,5", "2", "5", "the labels have shape"),
    ("3,5,2", "3,1", "5", "the labels have shape"),
    ("5", "5", "5", "the scores have shape"),
)


def model(op: str, scores: str, labels: str, weights: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[{scores}] x, int64[{labels}] t, float[{weights}] w) => (float y)
        {{ y = {op} (x, t, w) }}""")


@pytest.mark.parametrize(("op", "case"), list(product(LOSSES, BAD)))
def test_operands_that_do_not_fit_are_refused(op: str, case: tuple[str, str, str, str]):
    *shapes, reason = case
    with pytest.raises(InvalidModelError, match=reason):
        import_model(model(op, *shapes))


@pytest.mark.parametrize("op", LOSSES)
def test_operands_that_fit_are_taken(op: str):
    import_model(model(op, "3,5,2", "3,2", "5"))
