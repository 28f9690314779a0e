"""Rows and requests with Ray, on one machine: nothing may be lost, wrong, or answered twice.

    python -m pip install '.[test,ray]' && python benchmarks/serving.py

Scores 10,000 rows of Parquet with two workers, one of which is killed in the middle. Then 16
clients send 2,000 requests of 1 to 8 rows over the loopback, malformed ones among them, to two
deployments behind the same protocol, interleaved: this package and ONNX Runtime.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from byoc_mlir.ray import ServingLimits, apart, application, score, serving
from byoc_mlir.ray.deployment import ModelServer
from byoc_mlir.ray.service import Service
from byoc_mlir.tensors import TensorInfo

INPUTS, HIDDEN, OUTPUTS = 128, 1024, 16
CLIENTS = 16
MALFORMED = 20
"""Interval of malformed requests: each 20th one is malformed, in one of several ways."""


def save_model(path: Path) -> None:
    """Writes a perceptron of three layers, for any number of rows."""
    generator = np.random.default_rng(0)
    sizes = [INPUTS, HIDDEN, HIDDEN, OUTPUTS]
    weights, nodes, last = [], [], "x"
    for number, (rows, columns) in enumerate(pairwise(sizes)):
        array = generator.standard_normal((rows, columns)) / np.sqrt(rows)
        weights.append(numpy_helper.from_array(array.astype(np.float32), f"w{number}"))
        is_last = number == len(sizes) - 2
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"p{number}"]))
        last = "y" if is_last else f"h{number}"
        nodes.append(helper.make_node("Identity" if is_last else "Relu", [f"p{number}"], [last]))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", INPUTS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", OUTPUTS])
    graph = helper.make_graph(nodes, "mlp", [x], [y], weights)
    opsets = [helper.make_opsetid("", 21)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


class OnnxRuntime:
    """Model of ONNX Runtime with the interface that the service needs."""

    def __init__(self, path: str):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        self.inputs = (TensorInfo("x", np.dtype(np.float32), ("n", INPUTS)),)
        self.outputs = (TensorInfo("y", np.dtype(np.float32), ("n", OUTPUTS)),)

    def run(self, inputs: Mapping[str, Any], /) -> Mapping[str, Any]:
        return {"y": self._session.run(["y"], dict(inputs))[0]}


class OnnxRuntimeServer(ModelServer):
    """Replica with ONNX Runtime."""

    def __init__(self, path: str):
        import starlette.responses

        model = OnnxRuntime(path)
        self._service = Service("mlp", model, model.outputs, ServingLimits(), "onnxruntime")
        self._response = starlette.responses.Response


def killing(folder: Path, at: int) -> Any:
    """Returns a row unchanged; the first worker that gets row `at` kills itself."""

    def prepare(row: Mapping[str, Any]) -> Mapping[str, Any]:
        if row["id"] == at:
            try:
                (folder / "killed").touch(exist_ok=False)
            except FileExistsError:
                return {"x": row["x"]}
            os.kill(os.getpid(), 9)
        return {"x": row["x"]}

    return prepare


def score_rows(folder: Path, rows: int) -> None:
    """Runs scoring with two workers, one of which is killed; prints how often each row is in the
    result.
    """
    import pyarrow
    import ray
    from pyarrow import parquet

    (folder / "rows").mkdir()
    generator = np.random.default_rng(1)
    x = generator.standard_normal((rows, INPUTS)).astype(np.float32)
    values: list[Any] = list(x)
    bad = set(range(7, rows, 1000))
    for number in bad:
        values[number] = values[number][:-1]
    for part in range(8):
        some = slice(part * rows // 8, (part + 1) * rows // 8)
        table = pyarrow.table({"id": list(range(rows))[some], "x": values[some]})
        parquet.write_table(table, folder / "rows" / f"{part}.parquet")
    ray.init(address="local", include_dashboard=False, num_cpus=3, log_to_driver=False)
    start = time.perf_counter()
    scored = score(
        ray.data.read_parquet(str(folder / "rows"), override_num_blocks=32),
        folder / "mlp.onnx",
        workers=2,
        prepare=killing(folder, rows // 2),
        keep=["id"],
        options={"threads": 1},
    )
    good, refused = (part.to_pandas() for part in apart(scored))
    seconds = time.perf_counter() - start
    ray.shutdown()
    counts = Counter([*good["id"], *refused["id"]])
    wanted = OnnxRuntime(str(folder / "mlp.onnx")).run({"x": x})["y"]
    found = np.stack(good["y"].to_list())
    error = np.max(np.abs(found - wanted[good["id"].to_numpy()])) / np.max(np.abs(wanted))
    print(f"rows: {rows} in {seconds:.1f} s, a worker killed: {(folder / 'killed').exists()}")
    print(f"  scored once: {len(good)}, refused: {len(refused)} of {len(bad)} bad ones")
    print(f"  missing: {rows - len(counts)}, more than once: {sum(n > 1 for n in counts.values())}")
    print(f"  largest difference from ONNX Runtime: {error:.1g} of the largest output")


@dataclass(frozen=True)
class Request:
    """Request, with its expected outputs, or `None` if it must be refused."""

    body: bytes
    wanted: Any


def requests(path: str, count: int) -> Sequence[Request]:
    """Returns requests of 1 to 8 rows, some of them malformed."""
    generator, model = np.random.default_rng(2), OnnxRuntime(path)
    made: list[Request] = []
    for number in range(count):
        x = generator.standard_normal((1 + number % 8, INPUTS)).astype(np.float32)
        one = {"name": "x", "shape": x.shape, "datatype": "FP32", "data": x.tolist()}
        wanted = model.run({"x": x})["y"]
        if number % MALFORMED == MALFORMED - 1:
            changes = ({"shape": [9, 9]}, {"datatype": "INT8"}, {"data": "no"}, {"name": "z"})
            one, wanted = {**one, **changes[number // MALFORMED % len(changes)]}, None
        made.append(Request(json.dumps({"inputs": [one]}).encode(), wanted))
    return made


def ask(port: int, some: Sequence[Request]) -> list[tuple[float, str]]:
    """Returns the seconds of each request of one client, and its outcome."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    found: list[tuple[float, str]] = []
    for request in some:
        start = time.perf_counter()
        connection.request("POST", "/v2/models/mlp/infer", request.body)
        response = connection.getresponse()
        document = json.loads(response.read())
        found.append((time.perf_counter() - start, judged(response.status, document, request)))
    connection.close()
    return found


def judged(status: int, document: Mapping[str, Any], request: Request) -> str:
    """Returns the outcome of a request."""
    if request.wanted is None:
        return "refused" if status == 400 and "type" in document else "wrong"
    if status != 200:
        return "lost"
    outputs = np.array(document["outputs"][0]["data"]).reshape(document["outputs"][0]["shape"])
    is_right = np.allclose(outputs, request.wanted, rtol=1e-4, atol=1e-4)
    return "right" if is_right else "wrong"


def serve_requests(name: str, app: Any, asked: Sequence[Request]) -> None:
    """Sends the requests from all clients at once; prints times and outcomes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with serving(app, host="127.0.0.1", port=port, cores=1):
        ask(port, asked[:CLIENTS])
        start = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS) as clients:
            shares = [asked[number::CLIENTS] for number in range(CLIENTS)]
            answers = [one for some in clients.map(lambda x: ask(port, x), shares) for one in some]
        seconds = time.perf_counter() - start
    times = 1e3 * np.array([took for took, _ in answers])
    median, late = np.percentile(times, 50), np.percentile(times, 99)
    became = ", ".join(f"{what} {count}" for what, count in Counter(w for _, w in answers).items())
    rate = len(answers) / seconds
    print(f"{name}: {rate:.0f} requests/s, median {median:.1f} ms, p99 {late:.1f} ms; {became}")


def main() -> None:
    """Runs the scoring of rows, then the requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_model(folder / "mlp.onnx")
        path = str(folder / "mlp.onnx")
        if args.rows:
            score_rows(folder, args.rows)
        asked = requests(path, args.requests)
        for _ in range(args.rounds if args.requests else 0):
            serve_requests("byoc_mlir", application(path, name="mlp"), asked)
            serve_requests("onnxruntime", onnxruntime_application(path), asked)


def onnxruntime_application(path: str, replicas: int = 1) -> Any:
    """Returns a deployment of ONNX Runtime, equal to the deployment of this package."""
    from ray import serve

    deployment = serve.deployment(
        OnnxRuntimeServer,
        name="onnxruntime",
        num_replicas=replicas,
        ray_actor_options={"num_cpus": 1},
        max_ongoing_requests=576,
    )
    return deployment.bind(path)


if __name__ == "__main__":
    main()
