"""Forms of ops for which ONNX's evaluator agrees with ONNX Runtime; a test compares each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import TensorProto, helper

_ML = "ai.onnx.ml"
Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Form:
    """Standard op from an opset on, with the attributes that `refused` accepts."""

    since: int = 1
    refused: Callable[[Attributes], str | None] = lambda _: None


def unproven(node: onnx.NodeProto, opset: int) -> str | None:
    """Returns why ONNX's evaluator must not compute a node; `None` if it is proven correct."""
    form = PROVEN.get(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
    if form is None or opset < form.since or node.overload:
        return (
            "no target takes it, and ONNX's evaluator, the last resort, is not known to be right"
            " about it"
        )
    return form.refused({item.name: helper.get_attribute_value(item) for item in node.attribute})


_PARSED = (
    *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64),
    TensorProto.STRING,
)
_UNLIKE_OTHERS = ("C", "POSIX", "az", "lt", "tr")
"""Locales and languages with another case mapping of some letters."""


def _cast(attributes: Attributes) -> str | None:
    if attributes["to"] in _PARSED:
        return None
    names = ", ".join(map(TensorProto.DataType.Name, _PARSED))
    return f"`to` is {attributes['to']} where strings are cast, accepted are {names}"


def _labels(attributes: Attributes) -> str | None:
    if any(map(math.isnan, attributes.get("keys_floats", ()))):
        return "a key is NaN where values are strings"
    return None


def _normalizer(attributes: Attributes) -> str | None:
    locale = attributes.get("locale", b"").decode(errors="replace")
    if locale.split(".")[0].split("_")[0] not in _UNLIKE_OTHERS:
        return None
    return f"locale is '{locale}', accepted are those whose letters have the case of Unicode"


def _sequence(attributes: Attributes) -> str | None:
    return None if attributes.get("dtype") == TensorProto.STRING else "a sequence of no strings"


def _tf_idf(attributes: Attributes) -> str | None:
    mode = attributes["mode"].decode(errors="replace")
    return None if mode == "TF" else f"mode is {mode} where strings are counted, accepted is TF"


def _unique(attributes: Attributes) -> str | None:
    if "axis" not in attributes and attributes.get("sorted", 1):
        return None
    return "with an axis, or unsorted, strings are not compared"


_SINCE: Mapping[int, str] = {
    1: "Constant Gather Identity Shape Size Slice Squeeze Transpose Unsqueeze",
    2: "Split",
    4: "Concat",
    5: "Reshape",
    6: "Tile",
    8: "Expand",
    9: "Compress Flatten Where",
    10: "ReverseSequence",
    11: (
        "ConcatFromSequence GatherElements GatherND If ScatterElements ScatterND "
        "SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceLength "
        "SplitToSequence"
    ),
    15: "CastLike",
    17: "DFT MelWeightMatrix",
    19: "Equal",
    20: "RegexFullMatch StringConcat StringSplit",
}
PROVEN: Mapping[tuple[str, str], Form] = {
    **{("", name): Form(since) for since, names in _SINCE.items() for name in names.split()},
    ("", "Cast"): Form(9, _cast),
    ("", "SequenceEmpty"): Form(11, _sequence),
    ("", "StringNormalizer"): Form(10, _normalizer),
    ("", "TfIdfVectorizer"): Form(9, _tf_idf),
    ("", "Unique"): Form(11, _unique),
    (_ML, "ArrayFeatureExtractor"): Form(),
    (_ML, "LabelEncoder"): Form(2, _labels),
    (_ML, "OneHotEncoder"): Form(),
}
"""Proven forms, by domain and op."""
