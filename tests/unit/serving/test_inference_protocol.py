"""Requests of the protocol that are accepted or refused, and the form of answers."""

from __future__ import annotations

import json
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from byoc_mlir.errors import InvalidInputError
from byoc_mlir.ray.datatypes import to_bytes
from byoc_mlir.ray.protocol import HEADER_LENGTH, Answer, inference_answer, read_inference
from byoc_mlir.ray.refusals import RequestTooLargeError
from byoc_mlir.tensors import TensorInfo

X = TensorInfo("x", np.dtype(np.float32), ("n", 2))
IDS = TensorInfo("ids", np.dtype(np.int8), (2,))


def _tensor(**changes: Any) -> dict[str, Any]:
    return {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2.5], **changes}


def _body(**changes: Any) -> bytes:
    return json.dumps({"inputs": [_tensor(**changes)]}).encode()


def _outputs_of(answer: Answer) -> list[dict[str, Any]]:
    return json.loads(answer.body)["outputs"]


def test_data_may_be_flat_or_nested() -> None:
    for data in ([1, 2.5], [[1, 2.5]]):
        asked = read_inference(_body(data=data), None, [X], ["y"])
        np.testing.assert_array_equal(asked.arrays["x"], np.array([[1, 2.5]], np.float32))
        assert asked.arrays["x"].dtype == np.float32
        assert asked.outputs == {"y": False}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "z"}, "there is no input 'z'"),
        ({"name": ["x"]}, "there is no input"),
        ({"datatype": "INT64"}, "accepted is 'FP32'"),
        ({"shape": [1, 3]}, r"shape is \[1, 3\]"),
        ({"shape": [-1, 2]}, "shape is"),
        ({"shape": [True, 2]}, "shape is"),
        ({"shape": [2, 2]}, "has 4 elements, found 2"),
        ({"shape": [0, 2]}, "has 0 elements, found 2"),
        ({"shape": [1 << 70, 2]}, "elements, found 2"),
        ({"shape": [1 << 7000, 2]}, "accepted is x"),
        ({"shape": [0, 1 << 70]}, "accepted is x"),
        ({"shape": None}, "no list 'shape'"),
        ({"data": "12"}, "data is str"),
        ({"data": [1, [2]]}, "equal lengths"),
        ({"data": ["1", "2"]}, "no FP32"),
        ({"data": [None, 1]}, "no FP32"),
        ({"data": [1, 1e300]}, "cannot hold"),
        ({"parameters": 1}, "parameters is int"),
        ({"parameters": {"binary_data_size": -1}}, "no number of bytes"),
        ({"parameters": {"binary_data_size": 8}}, "ends 8 bytes before"),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        read_inference(_body(**changes), None, [X], ["y"])


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{", b"[]", b"\xff\xfe", b"{}", b'{"inputs": 3}', b'{"inputs": [3]}'),
        *(b'{"inputs": []}', b"[" * 100_000, _body()[:-2] + b', {"name": "x"}]}'),
        json.dumps({"inputs": [_tensor(), _tensor()]}).encode(),
        json.dumps({"inputs": [_tensor()], "id": 3}).encode(),
        json.dumps({"inputs": [_tensor()], "outputs": [{"name": "z"}]}).encode(),
    ],
)
def test_malformed_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(InvalidInputError):
        read_inference(body, None, [X], ["y"])


@pytest.mark.parametrize(
    ("data", "fits"), [([1, -128], True), ([1, 128], False), ([1, 1.5], False)]
)
def test_integers_are_not_rounded(data: list[float], fits: bool) -> None:
    one = _tensor(name="ids", shape=[2], datatype="INT8", data=data)
    body = json.dumps({"inputs": [one]}).encode()
    if fits:
        assert read_inference(body, None, [IDS], []).arrays["ids"].tolist() == data
        return
    with pytest.raises(InvalidInputError):
        read_inference(body, None, [IDS], [])


@pytest.mark.parametrize(
    "array",
    [
        np.array([[1.5, np.inf]], np.float32),
        np.array([[1.5, np.nan]], ml_dtypes.bfloat16),
        np.array([[True, False]]),
        np.array([["größe", ""]], object),
        np.zeros((0, 2), np.float64),
    ],
)
def test_bytes_come_back_as_they_were_sent(array: np.ndarray[Any, Any]) -> None:
    info = TensorInfo("x", array.dtype, ("n", 2))
    asked = read_inference(b'{"inputs": []}', None, [], ["x"])
    asked = type(asked)({}, "seven", {"x": True})
    answer = inference_answer("m", asked, {"x": array}, "1")
    length = int(answer.headers[HEADER_LENGTH])
    document = json.loads(answer.body[:length])
    assert document["id"] == "seven"
    request = json.dumps({"inputs": document["outputs"]}).encode()
    body = request + answer.body[length:]
    back = read_inference(body, str(len(request)), [info], ["x"]).arrays["x"]
    assert to_bytes(back) == to_bytes(array)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    with pytest.raises(InvalidInputError, match="belong to no tensor"):
        read_inference(body + b"x", str(len(request)), [info], ["x"])


@pytest.mark.parametrize("length", ["-1", "9" * 30, "x", "1000"])
def test_a_wrong_length_of_the_header_is_refused(length: str) -> None:
    with pytest.raises(InvalidInputError, match=HEADER_LENGTH):
        read_inference(_body(), length, [X], ["y"])


def test_json_says_floats_exactly_or_not_at_all() -> None:
    asked = read_inference(_body(), None, [X], ["y"])
    array = np.array([0.1, 1e-45, 3.4e38], np.float32)
    (one,) = _outputs_of(inference_answer("m", asked, {"y": array}, "1"))
    np.testing.assert_array_equal(np.array(one["data"], np.float32), array)
    assert (one["datatype"], one["shape"]) == ("FP32", [3])
    with pytest.raises(InvalidInputError, match="binary_data"):
        inference_answer("m", asked, {"y": np.array([np.nan], np.float32)}, "1")


@pytest.mark.parametrize("data", [["\\ud800"], [["a", 1]], "[" * 100 + '"a"' + "]" * 100])
def test_texts_that_are_none_are_refused(data: Any) -> None:
    info = TensorInfo("t", np.dtype(object), ("n",))
    text = data if isinstance(data, str) else json.dumps(data).replace("\\\\u", "\\u")
    body = f'{{"inputs": [{{"name": "t", "shape": [1], "datatype": "BYTES", "data": {text}}}]}}'
    with pytest.raises(InvalidInputError, match="input 't': data has"):
        read_inference(body.encode(), None, [info], [])


def test_a_document_of_many_elements_is_refused_before_it_is_read() -> None:
    body = _body()[:-3] + b"[]," * 1000 + b"[]]}]}"
    with pytest.raises(RequestTooLargeError, match="accepted are 100"):
        read_inference(body, None, [X], ["y"], 100)
    asked = read_inference(_body(), None, [X], ["y"], 100)
    with pytest.raises(InvalidInputError, match="as JSON accepted are 100"):
        inference_answer("m", asked, {"y": np.zeros(101, np.float32)}, "1", 100)
