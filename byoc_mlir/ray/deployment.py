"""A model as a deployment of Ray Serve."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from byoc_mlir.errors import ByocError, ExecutionError
from byoc_mlir.extras import import_extra
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.ray.front import BYTES_VARIABLE, IMPORT_PATH
from byoc_mlir.ray.protocol import Answer
from byoc_mlir.ray.refusals import described, status_of
from byoc_mlir.ray.served import EXTRA, open_model, output_tensors, warm_up
from byoc_mlir.ray.service import Service, ServingLimits

_DEPLOYMENT = "byoc_mlir"

_MORE_SECONDS = 10
"""Seconds that Ray waits for an answer beyond the replica's own timeout."""

_LOOPBACK = "127.0.0.1"
_LOOPBACK_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Environment variable that lets Ray use the loopback address for a node, if it is `0`."""

_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",
    _LOOPBACK_VARIABLE: "0",
    "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH": IMPORT_PATH,
    # serve.start waits as long, but Ray ends a proxy that takes more than 5 seconds to start, as
    # it does under load
    "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "60",
}
"""Environment variables of Ray's processes on a machine that serves alone."""


def prepare() -> None:
    """Sets the environment for `serving`, part of which Ray reads when it is imported."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


def _keep_to_loopback() -> None:
    """Restricts gRPC servers in this process to the loopback address.

    Ray starts one in each replica, on all interfaces, and has no option to change it.
    """
    server = import_extra("grpc.aio._server", EXTRA).Server
    add_port = server.add_insecure_port

    def add_insecure_port(self: Any, address: str) -> int:
        return add_port(self, f"{_LOOPBACK}:{address.rpartition(':')[2]}")

    server.add_insecure_port = add_insecure_port


class ModelServer:
    """Replica: a model that is loaded once and answers requests.

    Args: as for `application`.
    """

    def __init__(self, path: str, name: str, limits: ServingLimits, options: Mapping[str, Any]):
        if os.environ.get(_LOOPBACK_VARIABLE) == "0":
            _keep_to_loopback()
        model = open_model(path, **options)
        warm_up(model)
        replica = f"{socket.gethostname()}-{os.getpid()}"
        self._service = Service(name, model, output_tensors(path, model), limits, replica)
        self._response = import_extra("starlette.responses", EXTRA).Response

    async def __call__(self, request: Any) -> Any:
        """Answers a `starlette.requests.Request`."""
        answer = await self._answer(request)
        return self._response(answer.body, answer.status, headers=dict(answer.headers))

    async def _answer(self, request: Any) -> Answer:
        try:
            self._service.refuse_length(request.headers.get("content-length"))
        except ByocError as error:
            return Answer.of(described(error), status_of(error))
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = await request.body()
        return await self._service.answer(request.method, request.url.path, headers, body)


def application(
    path: str | Path,
    *,
    name: str | None = None,
    replicas: int = 1,
    limits: ServingLimits | Limits | None = None,
    **options: Any,
) -> Any:
    """Returns a model as an application for `serve.run`.

    Args:
        path: an `.onnx` or `.so` file, on all nodes that have replicas.
        name: the model's name in the paths of requests; by default the file's stem.
        replicas: processes that answer requests, each with the model.
        limits: limits of each replica; `byoc_mlir.Limits` limits the model alone and is short for
            `ServingLimits(model=…)`.
        options: options of `compile`; for a `.so` file `threads` alone. By default a replica uses
            one thread.

    Raises:
        MissingExtraError: Ray is not installed.
    """
    if not isinstance(limits, ServingLimits):
        limits = ServingLimits(model=limits or DEFAULT_LIMITS)
    options = {"threads": 1, "limits": limits.model, **options}
    deployment = import_extra("ray.serve", EXTRA).deployment(
        ModelServer,
        name=_DEPLOYMENT,
        num_replicas=replicas,
        ray_actor_options={"num_cpus": options["threads"]},
        max_ongoing_requests=2 * (limits.waiting + limits.batch_rows),  # the replica refuses more
    )
    path = Path(path)
    return deployment.bind(str(path.absolute()), name or path.stem, limits, options)


@contextmanager
def serving(
    app: Any, *, host: str, port: int, cores: int, limits: ServingLimits | None = None
) -> Generator[str]:
    """Serves an application on this machine alone: starts Ray, and stops it at the end.

    Ray's own ports are open on the loopback address alone if `prepare` is called before Ray is
    imported.

    Args:
        cores: cores for the replicas.
        limits: limits of the application.

    Yields:
        The address, `http://127.0.0.1:8000`.

    Raises:
        MissingExtraError: Ray is not installed.
        ExecutionError: Ray cannot start a server, or a replica cannot open the model.
        OSError: the port is in use.
    """
    prepare()
    limits = limits or ServingLimits()
    os.environ[BYTES_VARIABLE] = str(limits.request_bytes)
    http = {"host": host, "port": port, "request_timeout_s": limits.seconds + _MORE_SECONDS}
    ray, serve = import_extra("ray", EXTRA), import_extra("ray.serve", EXTRA)
    socket.create_server((host, port)).close()  # its error is clearer than that of Ray's proxy
    try:
        try:
            ray.init(
                address="local",
                include_dashboard=False,
                num_cpus=cores,
                log_to_driver=False,
                _node_ip_address=_LOOPBACK,
            )
            serve.start(proxy_location="HeadOnly", http_options=http)
            serve.run(app, name=_DEPLOYMENT, route_prefix="/")
        except Exception as error:  # Ray raises what it likes, `Exception` itself too
            raise ExecutionError(f"Ray does not start the server: {error}") from error
        yield f"http://{host}:{port}"
    finally:
        if ray.is_initialized():
            serve.shutdown()
            ray.shutdown()
