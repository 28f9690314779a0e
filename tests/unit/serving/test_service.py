"""Paths of the protocol, and its errors over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from served_models import F32, Doubling

from byoc_mlir.errors import (
    ByocError,
    InvalidInputError,
    InvalidModelError,
    LimitExceededError,
    UnsupportedModelError,
)
from byoc_mlir.limits import Limits
from byoc_mlir.ray.protocol import Answer
from byoc_mlir.ray.refusals import RequestTooLargeError
from byoc_mlir.ray.service import Service, ServingLimits
from byoc_mlir.tensors import StructureInfo, TensorInfo


def _service(**limits: Any) -> Service:
    model = Doubling()
    return Service("twice", model, model.outputs, ServingLimits(**limits))


def _asked(service: Service, method: str, path: str, body: bytes = b"") -> Answer:
    return asyncio.run(service.answer(method, path, {}, body))


def _request(rows: Sequence[Sequence[float]]) -> bytes:
    one = {"name": "x", "shape": [len(rows), 2], "datatype": "FP32", "data": rows}
    return json.dumps({"id": "a", "inputs": [one]}).encode()


INFER = "/v2/models/twice/infer"


@pytest.mark.parametrize("path", [INFER, "/v2/models/twice/versions/1/infer"])
def test_an_inference(path: str) -> None:
    answer = _asked(_service(), "POST", path, _request([[1, 2], [3, 4]]))
    assert answer.status == 200
    assert json.loads(answer.body) == {
        "model_name": "twice",
        "model_version": "1",
        "id": "a",
        "outputs": [{"name": "y", "datatype": "FP32", "shape": [2, 2], "data": [2, 4, 6, 8]}],
    }


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("/v2", {"name": "byoc_mlir", "extensions": ["binary_tensor_data"]}),
        ("/v2/health/live", {"live": True}),
        ("/v2/health/ready", {"ready": True}),
        ("/v2/models/twice/ready", {"name": "twice", "ready": True}),
        (
            "/v2/models/twice",
            {
                "versions": ["1"],
                "inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 2]}],
                "outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}],
            },
        ),
    ],
)
def test_health_and_metadata(path: str, part: dict[str, Any]) -> None:
    answer = _asked(_service(), "GET", path)
    assert answer.status == 200
    assert part.items() <= json.loads(answer.body).items()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "kind"),
    [
        ("GET", "/", b"", 404, "UnknownPathError"),
        ("GET", "/v2/models/other", b"", 404, "UnknownPathError"),
        ("GET", "/v2/models/twice/versions/2", b"", 404, "UnknownPathError"),
        ("GET", "/v2/models/twice/what", b"", 404, "UnknownPathError"),
        ("GET", INFER, b"", 405, "WrongMethodError"),
        ("POST", "/v2/health/live", b"", 405, "WrongMethodError"),
        ("POST", INFER, b"{", 400, "InvalidInputError"),
        ("POST", INFER, _request([[13, 1]]), 400, "InvalidInputError"),
        ("POST", INFER, b"x" * 1001, 413, "RequestTooLargeError"),
    ],
)
def test_errors_have_a_status_and_a_type(
    method: str, path: str, body: bytes, status: int, kind: str
) -> None:
    answer = _asked(_service(request_bytes=1000), method, path, body)
    assert (answer.status, json.loads(answer.body)["type"]) == (status, kind)
    assert json.loads(answer.body)["error"]


def test_a_defect_of_the_model_is_500() -> None:
    class Broken(Doubling):
        def run(self, inputs: Any, /) -> Any:
            raise RuntimeError("out of order")

    service = Service("twice", Broken(), Broken().outputs, ServingLimits())
    answer = _asked(service, "POST", INFER, _request([[1, 2]]))
    assert (answer.status, json.loads(answer.body)["type"]) == (500, "InternalError")


def test_metrics_count_answers_and_rows() -> None:
    service = _service()
    _asked(service, "POST", INFER, _request([[1, 2], [3, 4]]))
    _asked(service, "POST", INFER, b"{")
    text = _asked(service, "GET", "/metrics").body.decode()
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    assert {(one.labels["model"], one.labels["replica"]) for one in samples} == {("twice", "")}
    assert {
        (one.labels["status"], one.labels["error"]): one.value
        for one in samples
        if one.name == "byoc_requests_total"
    } == {("200", ""): 1, ("400", "InvalidInputError"): 1}
    rows = {(one.name, one.labels.get("le")): one.value for one in samples}
    assert rows["byoc_batch_rows_sum", None] == 2
    assert rows["byoc_batch_rows_bucket", "1.0"] == 0
    assert rows["byoc_batch_rows_bucket", "2.0"] == 1
    assert rows["byoc_request_seconds_count", None] == 2


def test_a_length_is_refused_before_the_body_is_read() -> None:
    service = _service(request_bytes=1000)
    service.refuse_length("1000")
    service.refuse_length(None)
    for length in ("1001", "9" * 50):
        with pytest.raises(RequestTooLargeError):
            service.refuse_length(length)


def test_what_the_protocol_cannot_say_is_refused_at_the_start() -> None:
    model = Doubling()
    model.inputs = (StructureInfo("s", F32, (), "sequence"),)
    with pytest.raises(UnsupportedModelError, match="sequence"):
        Service("m", model, [], ServingLimits())
    model.inputs = (TensorInfo("c", np.dtype(np.complex64), (2,)),)
    with pytest.raises(InvalidInputError, match="complex64"):
        Service("m", model, [], ServingLimits())


@pytest.mark.parametrize("limits", [{"waiting": 0}, {"batch_rows": -1}, {"request_bytes": 1.5}])
def test_limits_are_checked(limits: dict[str, Any]) -> None:
    with pytest.raises(ByocError, match=next(iter(limits))):
        ServingLimits(**limits)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidModelError("two sizes differ"), 400),
        (LimitExceededError("tensor_bytes", "bytes of y", 2, 1), 413),
        (UnsupportedModelError([]), 400),
    ],
)
def test_what_a_model_refuses_is_the_fault_of_the_request(error: ByocError, status: int) -> None:
    class Refusing(Doubling):
        def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
            raise error

    model = Refusing()
    service = Service("twice", model, model.outputs, ServingLimits())
    assert _asked(service, "POST", INFER, _request([[1, 2]])).status == status


def test_an_answer_that_takes_too_long_is_an_error() -> None:
    class Slow(Doubling):
        def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
            time.sleep(3)
            return super().run(inputs)

    model = Slow()
    service = Service("twice", model, model.outputs, ServingLimits(seconds=1))
    answer = _asked(service, "POST", INFER, _request([[1, 2]]))
    assert (answer.status, json.loads(answer.body)["type"]) == (504, "RequestTimeoutError")


def test_large_requests_and_answers_are_handled_in_a_thread() -> None:
    rows = np.arange(80_000, dtype=np.float32).reshape(-1, 2)
    answer = _asked(_service(), "POST", INFER, _request(rows.tolist()))
    assert answer.status == 200
    assert json.loads(answer.body)["outputs"][0]["data"] == (2 * rows).ravel().tolist()


def test_limits_of_the_model_are_those_of_compile() -> None:
    assert ServingLimits(model=Limits(nodes=3)).model.nodes == 3
    with pytest.raises(ByocError, match="limits: model"):
        ServingLimits(model=3)  # pyright: ignore[reportArgumentType]
