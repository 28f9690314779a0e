"""Models of each op that ONNX's evaluator may compute, with strings wherever the op has some."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

ML = "ai.onnx.ml"
STRING = TensorProto.STRING
NEWEST = {"": 24, ML: 4}
"""Newest opsets that ONNX Runtime supports completely."""


def texts(*values: str) -> Any:
    return np.array(values, object)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def tensor(array: Any) -> TensorProto:
    return numpy_helper.from_array(np.asarray(array))


A = np.array([["b", "a", "ü"], ["", "a", "xyz"]], object)
ROW = texts("a", "", "zz", "b")
SENTENCES = texts("a b  c", "-a-b", "", "aabab", "  x ", "é é")
DAYS = texts("Monday", "tuesday", "été", "", "ÜBUNG", "ß", "monday", "İI", "ΑΣ", "ﬁ", "ᾳ")
WAVE = np.random.default_rng(0).standard_normal((1, 7, 1), np.float32)
MEL = (np.int64(8), np.int64(16), np.int64(8192), np.float32(0), np.float32(4096))
HARD = (1.5, -2, 3e10, 1e-7, 0.1, np.nan, np.inf, -np.inf, -0.0, 123456789, 1 / 3)


@dataclass(frozen=True)
class Case:
    """Node with its inputs; `None` is an omitted one."""

    op_type: str
    inputs: Sequence[Any]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    domain: str = ""
    sequence: bool = False
    """True if the first output is a sequence."""

    def model(self, opset: int) -> tuple[ModelProto, dict[str, Any]]:
        """Returns the model of the node, and its inputs."""
        given = [(f"i{at}", value) for at, value in enumerate(self.inputs) if value is not None]
        named = {name: np.asarray(value) for name, value in given}
        names = [f"i{at}" if f"i{at}" in named else "" for at in range(len(self.inputs))]
        results = [f"o{at}" for at in range(self.outputs)]
        node = helper.make_node(self.op_type, names, results, domain=self.domain, **self.attributes)
        outputs = [ValueInfoProto(name=name) for name in results]
        if self.sequence:
            outputs[0] = helper.make_tensor_sequence_value_info("o0", STRING, None)
        opsets = [helper.make_opsetid(self.domain, opset)]
        opsets += [helper.make_opsetid("", 17)] if self.domain else []
        return _model([node], named, outputs, opsets), named


def _model(
    nodes: Sequence[NodeProto], feeds: Mapping[str, Any], outputs: Sequence[Any], opsets: Any
) -> ModelProto:
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in feeds.items()
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "g", inputs, outputs), opset_imports=opsets, ir_version=8
    )
    return onnx.shape_inference.infer_shapes(model)


def _case(op_type: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Case:
    return Case(op_type, inputs, attributes, outputs)


def _labels(data: Any, **attributes: Any) -> Case:
    return Case("LabelEncoder", [data], attributes, domain=ML)


def _tf_idf(words: Any, **attributes: Any) -> Case:
    pool = ["a", "b", "", "a", "b", "b", ""]
    return _case(
        "TfIdfVectorizer",
        words,
        pool_strings=pool,
        ngram_counts=[0, 3],
        ngram_indexes=[0, 1, 2, 4, 3],
        **attributes,
    )


CASES = [
    *(
        _tf_idf(words, mode="TF", min_gram_length=least, max_gram_length=2, max_skip_count=skips)
        for words in (
            texts("a", "b", "", "a", "b", "d"),
            np.array([["b", "", "a"], ["b", "a", "b"]], object),
        )
        for least, skips in ((1, 0), (2, 1))
    ),
    _case("Identity", A),
    _case("Constant", value=tensor(A)),
    _case("Constant", value_string="hé"),
    _case("Constant", value_strings=["a", "", "b"]),
    _case("Reshape", A, ints(3, -1)),
    _case("Reshape", A, ints(0, 1, -1)),
    _case("Flatten", A, axis=0),
    _case("Squeeze", A[None], ints(0)),
    _case("Squeeze", A[None]),
    _case("Squeeze", A[None], axes=[0]),
    _case("Unsqueeze", A, ints(0, -1)),
    _case("Unsqueeze", A, axes=[0, 2]),
    _case("Transpose", A),
    _case("Transpose", A, perm=[1, 0]),
    _case("Expand", A, ints(2, 2, 3)),
    _case("Tile", A, ints(2, 3)),
    _case("Concat", A, A[:, :1], axis=-1),
    _case("Concat", A, A, axis=0),
    _case("Split", A, ints(1, 2), axis=1, outputs=2),
    _case("Split", A, axis=1, split=[1, 2], outputs=2),
    _case("Split", A, axis=1, num_outputs=2, outputs=2),
    _case("Slice", A, ints(-1), ints(-9), ints(1), ints(-2)),
    _case("Slice", A, starts=[0], ends=[2], axes=[1]),
    _case("Gather", A, ints(1, 0, -1), axis=1),
    _case("GatherElements", A, ints(1, 0, 1)[None]),
    _case("GatherND", A, ints(1, 0)[None]),
    _case("ScatterElements", A, ints(1, 0, 1)[None], texts("q", "r", "s")[None]),
    _case("ScatterND", A, ints(1, 0)[None], texts("q")),
    _case("Where", np.array([True, False, True]), A, texts("z")),
    _case("Equal", A, texts("a")),
    _case("Shape", A),
    _case("Size", A),
    _case("Compress", A, np.array([True, False, True]), axis=1),
    _case("Compress", A, np.array([True, False, True])),
    _case("Unique", A, outputs=4),
    _case("ReverseSequence", A, ints(1, 2, 1)),
    _case("Cast", np.array(HARD, np.float32), to=STRING),
    _case("Cast", np.array(HARD), to=STRING),
    _case("Cast", np.array([0.1, 3], np.float16), to=STRING),
    _case("Cast", np.array([1, -2, 2**40]), to=STRING),
    _case("Cast", np.array([3, 200], np.uint8), to=STRING),
    _case("Cast", np.array([True, False]), to=STRING),
    _case("Cast", texts("1e3", "NaN", "-INF", "inf", " 3.25", "+4", "-.5"), to=TensorProto.FLOAT),
    _case("Cast", texts("1e-300", "0.1"), to=TensorProto.DOUBLE),
    _case("Cast", texts("1", "-25", "007"), to=TensorProto.INT32),
    _case("Cast", texts("1", "-25", "007"), to=TensorProto.INT64),
    _case("Cast", A, to=STRING),
    _case("CastLike", texts("1", "2"), np.ones(1, np.float32)),
    _case("CastLike", np.array([1, 2]), texts("x")),
    _case("StringConcat", A, texts("!")),
    _case("StringSplit", SENTENCES, outputs=2),
    _case("StringSplit", SENTENCES, outputs=2, delimiter=" "),
    _case("StringSplit", SENTENCES, outputs=2, delimiter="-", maxsplit=1),
    _case("StringSplit", A, outputs=2, delimiter="ab"),
    _case("StringSplit", texts(), outputs=2),
    _case("RegexFullMatch", texts("abc", "a@b.com", "x\n", ""), pattern=r"[a-z]+(@[a-z]+\.com)?"),
    _case("RegexFullMatch", texts("12", "x", "ü"), pattern=r"(\d+)|ü"),
    *(
        _case(
            *("StringNormalizer", DAYS.reshape(shape)),
            case_change_action=case,
            is_case_sensitive=exact,
            locale="C.UTF-8",
            stopwords=stops,
        )
        for case in ("NONE", "LOWER", "UPPER")
        for exact in (0, 1)
        for shape, stops in (([-1], ["monday"]), ([1, -1], ["Monday", "ÉTÉ"]))
    ),
    _case("StringNormalizer", texts("a", "a"), stopwords=["a"], is_case_sensitive=1),
    _case("DFT", WAVE, axis=1),
    _case("DFT", WAVE, axis=1, onesided=1),
    _case("DFT", WAVE, ints(5)[0], ints(1)[0]),
    _case("DFT", np.concatenate([WAVE, 2 * WAVE], -1), None, ints(1)[0], inverse=1),
    _case("MelWeightMatrix", *MEL),
    Case("SequenceConstruct", [A, ROW], sequence=True),
    Case("SequenceEmpty", [], {"dtype": STRING}, sequence=True),
    Case("SplitToSequence", [ROW], {"axis": 0}, sequence=True),
    Case("SplitToSequence", [ROW], {"axis": 0, "keepdims": 0}, sequence=True),
    Case("SplitToSequence", [ROW, ints(3, 1)], {"axis": 0}, sequence=True),
    _labels(ROW, keys_strings=["a", "b"], values_int64s=[1, 2], default_int64=7),
    _labels(ROW, keys_strings=["a", "b"], values_floats=[1.5, 2]),
    _labels(ROW, keys_strings=["a", "b"], values_strings=["q", "r"], default_string="D"),
    _labels(ROW, keys_strings=["a", "b"], values_strings=["q", "r"]),
    _labels(ints(1, 2, 3), keys_int64s=[1, 2], values_strings=["q", "r"]),
    _labels(
        ROW,
        keys_tensor=tensor(texts("a", "b")),
        values_tensor=tensor(np.array([1, 2], np.int16)),
        default_tensor=tensor(np.array([9], np.int16)),
    ),
    Case("OneHotEncoder", [ROW], {"cats_strings": ["a", "b"]}, domain=ML),
    Case("ArrayFeatureExtractor", [A, ints(2, 0)], domain=ML),
]


def _node(op_type: str, inputs: str, outputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs.split(), outputs.split(), **attributes)


def _branch(op_type: str, inputs: str) -> onnx.GraphProto:
    result = helper.make_tensor_value_info(f"{op_type}_", STRING, None)
    more = {"axis": 0} if op_type == "Concat" else {}
    return helper.make_graph([_node(op_type, inputs, result.name, **more)], "b", [], [result])


def graphs(opset: int) -> Iterator[tuple[set[str], ModelProto, dict[str, Any]]]:
    """Yields models of several ops, with the names of the ops that they cover, and their inputs."""
    feeds = {"x": ROW, "y": texts("c"), "i": np.array(0), "j": np.array(-1)}
    nodes = [
        _node("SequenceConstruct", "x y", "s"),
        _node("SequenceInsert", "s y i", "u"),
        _node("SequenceErase", "u j", "v"),
        _node("SequenceLength", "u", "n"),
        _node("SequenceAt", "v j", "a"),
        _node("ConcatFromSequence", "u", "c", axis=0),
    ]
    outputs = [helper.make_tensor_sequence_value_info(name, STRING, None) for name in "uv"]
    outputs += [ValueInfoProto(name=name) for name in "nac"]
    opsets = [helper.make_opsetid("", opset)]
    yield {node.op_type for node in nodes}, _model(nodes, feeds, outputs, opsets), feeds
    branches = {"then_branch": _branch("Identity", "x"), "else_branch": _branch("Concat", "x y")}
    for condition in (True, False):
        feeds = {"x": ROW, "y": texts("c"), "k": np.array(condition)}
        model = _model(
            [_node("If", "k", "o", **branches)], feeds, [ValueInfoProto(name="o")], opsets
        )
        yield {"If"}, model, feeds


def versions(domain: str, op_type: str, since: int) -> list[int]:
    """Returns the opsets with a schema of an op, from `since` on."""
    found: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated and since <= schema.since_version <= NEWEST.get(schema.domain, 0):
            found[schema.domain, schema.name].append(schema.since_version)
    return sorted(found[domain, op_type])
