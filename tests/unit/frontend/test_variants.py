"""One import for all sizes, unless the ops of a model need more; reports state it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from onnx import ModelProto, parser
from symbolic_models import encoder, encoder_shapes, symbolised

import byoc_mlir
from byoc_mlir.compiler.symbolic import SymbolicModel
from byoc_mlir.frontend.files.load import load_model
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.runtime.report import GuardRow
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.networks.growing import growing_decoder
from byoc_mlir.testing.networks.sequences import recogniser

Shapes = Mapping[str, tuple[int, ...]]

_LAYERS, _HEADS, _SIZE = 2, 2, 8


def _decoder() -> ModelProto:
    return growing_decoder(width=_HEADS * _SIZE, heads=_HEADS, layers=_LAYERS, vocabulary=32)


def _decoder_shapes(batch: int, seq: int, past: int) -> Shapes:
    cache = {
        f"past.{layer}.{name}": (batch, _HEADS, past, _SIZE)
        for layer in range(_LAYERS)
        for name in ("key", "value")
    }
    return {"input_ids": (batch, seq), **cache}


def _images(name: str) -> ModelProto:
    return symbolised(NETWORKS[name](), {"image": {0: "batch", 2: "height", 3: "width"}})


def _lstm() -> ModelProto:
    return symbolised(NETWORKS["lstm2"](), {"features": {0: "steps", 1: "batch"}})


IMAGES = [{"image": shape} for shape in [(2, 3, 64, 96), (1, 3, 96, 64), (3, 3, 32, 32)]]
MASKS = [
    {"keys": (past, 4), "x": (seq, 4), "mask": (total,)}
    for past, seq, total in [(0, 5, 5), (5, 1, 6), (9, 3, 12)]
]
"""Shapes with a separate symbol for the sum, since exporters name it `past + seq`."""
LINES = [{"image": (1, 1, 32, width)} for width in (64, 100, 36)]
ENCODER = [encoder_shapes(*sizes) for sizes in [(2, 16), (3, 7), (1, 1)]]
PROMPT_THEN_TOKENS = [_decoder_shapes(*sizes) for sizes in [(1, 6, 0), (1, 1, 6), (1, 1, 7)]]


def _masked() -> ModelProto:
    return parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[past, 4] keys, float[seq, 4] x, float[total] mask) => (float[seq, total] y) {
            all = Concat <axis = 0> (keys, x)
            turned = Transpose (all)
            scores = MatMul (x, turned)
            y = Add (scores, mask)
        }
    """)


@pytest.mark.parametrize(
    ("build", "shapes", "guards"),
    [
        (_masked, MASKS, ["past + seq == total"]),
        (_masked, MASKS[1:], ["past + seq == total"]),
        (encoder, ENCODER, ["min(seq, 512) == seq"]),  # its table of places is that long
        (_decoder, PROMPT_THEN_TOKENS, []),
        (_decoder, PROMPT_THEN_TOKENS[::-1], []),
        (recogniser, LINES, ["1 <= width", "1 <= floordiv(width, 2)", "1 <= floordiv(width, 4)"]),
        (_lstm, [{"features": (steps, batch, 128)} for steps, batch in [(4, 6), (1, 5)]], []),
    ],
    ids=[
        "mask",
        "mask, tokens first",
        "encoder",
        "decoder",
        "decoder, tokens first",
        "recogniser",
        "lstm",
    ],
)
def test_one_import_serves_a_stream(
    build: Callable[[], ModelProto], shapes: Sequence[Shapes], guards: Sequence[str]
) -> None:
    assert _guards_of_the_one_variant(build(), shapes) == guards


def test_images_of_all_sizes_are_served_by_one_import() -> None:
    """Checks the guards, which only ask whether the images are empty."""
    guards = _guards_of_the_one_variant(_images("resnet18"), IMAGES)
    assert all(guard.startswith("1 <= ") for guard in guards)


def _guards_of_the_one_variant(model: ModelProto, shapes: Sequence[Shapes]) -> list[str]:
    symbolic = SymbolicModel(load_model(model), TensorReader(None))
    found = [symbolic.at(each) for each in shapes]
    variants = {one.variant for one in found if one is not None}
    assert None not in found
    assert len(variants) == 1
    (variant,) = variants
    assert variant is not None
    return [str(guard) for guard in variant.guards]


def _compared(text: str) -> ModelProto:
    return parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[n, 4] x, float[k, 4] y) => (float[a, b] z) {{ {text} }}
    """)


def test_a_report_lists_the_variants_with_who_asked() -> None:
    model = _compared("[add] z = Add(x, y)")
    with byoc_mlir.compile(model, (), threads=1) as executable:
        for n, k in ((3, 3), (5, 5), (1, 5)):
            x, y = np.ones((n, 4), np.float32), np.ones((k, 4), np.float32)
            np.testing.assert_array_equal(executable.run({"x": x, "y": y})["z"], x + y)
        report = executable.report()
    same, broadcast = report.variants
    assert same.guards == (GuardRow("n == k", "add"),)
    assert same.shapes == ()
    assert broadcast.shapes == ("x[1, 4], y[5, 4]",)
    assert "variant 1: n == k (add); one program" in str(report)
    assert json.loads(report.to_json())["variants"][0]["guards"][0]["node"] == "add"


def test_a_report_says_why_an_import_serves_one_set_of_shapes() -> None:
    model = parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        agraph (float[n, 4] x, int64[2] shape) => (float[a, b] z) { z = Reshape(x, shape) }
    """)
    with byoc_mlir.compile(model, (), threads=1) as executable:
        x, shape = np.ones((3, 4), np.float32), np.array([-1, 3])
        assert executable.run({"x": x, "shape": shape})["z"].shape == (4, 3)
        (variant,) = executable.report().variants
    assert variant.reason == "the values of shape are compiled in"


def test_a_model_of_fixed_shapes_has_no_variants() -> None:
    with byoc_mlir.compile(NETWORKS["mlp3"](), (), threads=1) as executable:
        assert executable.report().variants == ()
