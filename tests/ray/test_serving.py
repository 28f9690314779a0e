"""Answers of `byoc serve` over HTTP on the loopback; malformed requests affect no other request."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("ray.serve")

PATH = "/v2/models/twice/infer"


def _save_model(path: Path) -> None:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 2]) for n in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "x"], ["y"])], "twice", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), path)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Starts a server, yields its port, and stops it."""
    path, port = tmp_path_factory.mktemp("served") / "twice.onnx", _free_port()
    _save_model(path)
    before = _open_to_others()
    options = ["--targets", "", "--port", str(port), "--request-bytes", "10000", "--json"]
    options += ["--limit", "tensor_bytes=8000"]
    command = [sys.executable, "-m", "byoc_mlir.tools.byoc", "serve", str(path), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        first = next((line for line in lines if line.startswith("{")), "{}")
        assert json.loads(first).get("address") == f"http://127.0.0.1:{port}"
        assert _open_to_others() <= before
        yield port
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0


def _open_to_others() -> set[str]:
    """Returns the sockets that listen on addresses other than the loopback."""
    rows = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path("/proc/net", name).read_text().splitlines()[1:]
    ]
    own = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
    return {row[1] for row in rows if row[3] == "0A" and row[1].split(":")[0] not in own}


def _asked(port: int, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        content = response.read()
        is_json = response.headers["content-type"].startswith("application/json")
        return response.status, json.loads(content) if is_json else content
    finally:
        connection.close()


def _request(rows: np.ndarray[Any, Any]) -> bytes:
    one = {"name": "x", "shape": rows.shape, "datatype": "FP32", "data": rows.tolist()}
    return json.dumps({"inputs": [one]}).encode()


def _of_bytes(rows: int) -> bytes:
    """Returns a JSON request for `rows` rows of zeros."""
    return _request(np.zeros((rows, 2), np.int8))


def test_health_metadata_and_metrics(port: int) -> None:
    assert _asked(port, "GET", "/v2/health/ready") == (200, {"ready": True})
    status, metadata = _asked(port, "GET", "/v2/models/twice")
    assert status == 200
    assert metadata["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}]
    assert _asked(port, "GET", "/metrics")[1].startswith(b"# HELP byoc_requests_total")


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b"{", 400, "InvalidInputError"),
        (_request(np.zeros((1, 3))), 400, "InvalidInputError"),
        (b"x" * 10_001, 413, "RequestTooLargeError"),
        (_of_bytes(1001), 413, "LimitExceededError"),
    ],
)
def test_errors_are_typed(port: int, body: bytes, status: int, kind: str) -> None:
    found, document = _asked(port, "POST", PATH, body)
    assert (found, document["type"]) == (status, kind)


def test_clients_at_once_get_their_own_answers(port: int) -> None:
    def ask(number: int) -> bool:
        if number % 7 == 3:
            return _asked(port, "POST", PATH, b'{"inputs": 3}')[0] == 400
        rows = np.full((1 + number % 5, 2), number, np.float32)
        status, document = _asked(port, "POST", PATH, _request(rows))
        return status == 200 and document["outputs"][0]["data"] == (2 * rows).ravel().tolist()

    with ThreadPoolExecutor(4) as clients:
        assert all(clients.map(ask, range(60)))


def test_each_answer_is_json(port: int) -> None:
    assert _asked(port, "GET", "/v2/nothing")[1]["type"] == "UnknownPathError"
