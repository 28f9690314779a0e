"""Each text of a model may be hostile: not UTF-8, with null characters, empty or huge."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from helpers.models import parsed
from onnx import TensorProto, helper, numpy_helper

import byoc_mlir
from byoc_mlir.errors import ByocError, InternalError, InvalidModelError, UnsafeModelError

TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)
MARK = "QQQQQQ"  # replaced in the serialised model by as many bytes
BYTES = [b"\xff\xfe\xfdabc", b"a\0b\0cd", b"\xed\xa0\x80abc", b"../../"]


def _model(folder: Path) -> onnx.ModelProto:
    """Returns a model with a message of each kind that ONNX has, as far as possible."""
    w = numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    far = TensorProto(name="far", data_type=TensorProto.FLOAT, dims=[2, 2])
    far.data_location = TensorProto.EXTERNAL
    far.external_data.add(key="location", value="w.bin")
    (folder / "w.bin").write_bytes(np.ones((2, 2), np.float32).tobytes())
    texts = numpy_helper.from_array(np.array([b"one", b"two"], object), "texts")
    branch = helper.make_graph(
        [helper.make_node("Neg", ["h"], ["out"], name="inner")],
        "branch",
        [],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="mm"),
        helper.make_node("Add", ["a", "far"], ["b"], name="add"),
        helper.make_node("Double", ["b"], ["h"], name="call", domain="own", factor=2.0),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("StringConcat", ["texts", "texts"], ["t"], name="strings"),
        helper.make_node("LeakyRelu", ["h"], ["l"], alpha=0.5),
    ]
    scale = helper.make_node("Constant", [], ["k"])
    scale.attribute.add(name="value_float", type=onnx.AttributeProto.FLOAT, ref_attr_name="factor")
    body = [scale, helper.make_node("Mul", ["v", "k"], ["r"])]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
    double = helper.make_function("own", "Double", ["v"], ["r"], body, opsets[:1], ["factor"])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 2]),
        helper.make_tensor_value_info("t", TensorProto.STRING, [2]),
        helper.make_tensor_value_info("l", TensorProto.FLOAT, ["n", 2]),
    ]
    graph = helper.make_graph(nodes, "g", [x, c], outputs, [w, far, texts])
    graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, ["n", 2]))
    graph.quantization_annotation.add(tensor_name="h").quant_parameter_tensor_names.add(key="k")
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=[double])
    helper.set_model_props(model, {"key": "value"})
    return model


def _messages(message: Message, path: str = "") -> Iterator[tuple[str, Message]]:
    yield path, message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            many = value if field.is_repeated else [value]
            for at, one in enumerate(many):
                yield from _messages(one, f"{path}.{field.name}[{at}]")


def _texts(model: onnx.ModelProto) -> list[tuple[str, str]]:
    """Returns the places of texts: the path of a message, and the field."""
    found: dict[tuple[str, str, str], tuple[str, str]] = {}
    for path, message in _messages(model):
        for field in message.DESCRIPTOR.fields:
            key = message.DESCRIPTOR.name, field.name, path.rpartition(".")[2].partition("[")[0]
            if field.type in TEXTS and field.name != "raw_data":
                found.setdefault(key, (path, field.name))
    return list(found.values())


def _with_text(model: onnx.ModelProto, where: tuple[str, str], text: str) -> onnx.ModelProto:
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    path, name = where
    message: Any = dict(_messages(changed))[path]
    field = message.DESCRIPTOR.fields_by_name[name]
    value = text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
    if not field.is_repeated:
        setattr(message, name, value)
    elif getattr(message, name):
        getattr(message, name)[0] = value
    else:
        getattr(message, name).append(value)
    return changed


def _outcome(data: bytes, folder: Path) -> type[ByocError] | None:
    path = folder / "model.onnx"
    path.write_bytes(data)
    inputs = {"x": np.ones((1, 2), np.float32), "c": np.array(True)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with byoc_mlir.compile(path, targets=(), cache=False, interpreter=False) as executable:
                executable.run(inputs)
    except InternalError:
        raise
    except ByocError as error:
        return type(error)
    return None


def _reached(kind: Any, known: set[str]) -> set[str]:
    if kind.name not in known:
        known.add(kind.name)
        for field in kind.fields:
            if field.message_type is not None:
                _reached(field.message_type, known)
    return known


def test_the_model_runs_and_has_most_kinds_of_messages(tmp_path: Path) -> None:
    model = _model(tmp_path)
    assert _outcome(model.SerializeToString(), tmp_path) is None
    found = {message.DESCRIPTOR.name for _, message in _messages(model)}
    missing = _reached(onnx.ModelProto.DESCRIPTOR, set()) - found
    assert not missing & {"NodeProto", "FunctionProto", "TensorProto", "Dimension", "TypeProto"}


@pytest.mark.parametrize("text", BYTES, ids=repr)
def test_no_text_is_a_defect(text: bytes, tmp_path: Path) -> None:
    model = _model(tmp_path)
    for where in _texts(model):
        data = _with_text(model, where, MARK).SerializeToString()
        assert data.count(MARK.encode()) == 1
        kind = _outcome(data.replace(MARK.encode(), text), tmp_path)
        is_utf8 = text.decode(errors="replace").encode() == text
        if not is_utf8 and where[1] not in ("doc_string", "s", "strings", "string_data"):
            assert kind in (InvalidModelError, UnsafeModelError), where


@pytest.mark.parametrize("text", ["", "x" * 70_000])
def test_no_empty_or_huge_text_is_a_defect(text: str, tmp_path: Path) -> None:
    model = _model(tmp_path)
    for where in _texts(model):
        _outcome(_with_text(model, where, text).SerializeToString(), tmp_path)


def test_a_tensor_has_64_dimensions_at_most() -> None:
    model = parsed("(int64[n] s) => (y)", "y = ConstantOfShape (s)")
    with byoc_mlir.compile(model, targets=()) as executable:
        assert executable.run({"s": np.ones(64, np.int64)})["y"].ndim == 64
        with pytest.raises(InvalidModelError, match="100 dimensions, accepted are up to 64"):
            executable.run({"s": np.ones(100, np.int64)})
