"""Service of the Open Inference Protocol's paths for one model, independent of the web server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from byoc_mlir import __version__
from byoc_mlir.boundary import check_argument, translated
from byoc_mlir.errors import ByocError
from byoc_mlir.limits import DEFAULT_LIMITS, Limits
from byoc_mlir.ray.batcher import Batcher
from byoc_mlir.ray.metrics import Metrics
from byoc_mlir.ray.protocol import (
    HEADER_LENGTH,
    MOST_ELEMENTS,
    Answer,
    elements_of,
    inference_answer,
    read_inference,
    tensor_metadata,
)
from byoc_mlir.ray.refusals import (
    RequestTimeoutError,
    RequestTooLargeError,
    UnknownPathError,
    WrongMethodError,
    described,
    status_of,
)
from byoc_mlir.ray.served import Model, check_tensors
from byoc_mlir.tensors import TensorInfo

_SMALL = 1 << 16
"""Maximum bytes of a request, or elements of an answer, that are handled without a separate thread.
"""

VERSION = "1"
"""Version of every model: there is one."""


@dataclass(frozen=True)
class ServingLimits:
    """Limits of one replica."""

    request_bytes: int = 64 << 20
    """Maximum size of a request's body."""
    batch_rows: int = 32
    """Maximum number of rows that run as one batch; with 1, each request runs alone."""
    waiting: int = 256
    """Maximum number of waiting requests; further ones are refused with status 503."""
    json_elements: int = MOST_ELEMENTS
    """Maximum number of elements in the JSON of a request or an answer; tensors as bytes do not
    count.
    """
    seconds: int = 120
    """Maximum time in seconds until a request is answered."""
    model: Limits = DEFAULT_LIMITS
    """Limits of the model, which hold for each request, too."""

    def __post_init__(self) -> None:
        check_argument("limits: model", self.model, Limits, "byoc_mlir.Limits")
        for name, value in vars(self).items():
            if name == "model":
                continue
            check_argument(f"limits: {name}", value, int, "a whole number")
            if value < 1:
                raise ByocError(f"limits: {name} is {value}, accepted are 1 and more")


class Service:
    """Service that answers requests for one model.

    Args:
        name: the model's name in paths.
        outputs: the model's outputs.
        replica: name of the process in metrics.

    Raises:
        UnsupportedModelError: an input of the model is not a tensor.
        InvalidInputError: the protocol has no name for the elements of some tensor.
    """

    def __init__(
        self,
        name: str,
        model: Model,
        outputs: Sequence[TensorInfo],
        limits: ServingLimits,
        replica: str = "",
    ):
        check_tensors(model.inputs)
        self._name = name
        self._model = model
        self._limits = limits
        self._outputs = [info.name for info in outputs]
        self._metadata = {
            "name": name,
            "versions": [VERSION],
            "platform": "byoc_mlir",
            "inputs": [tensor_metadata(info) for info in model.inputs],
            "outputs": [tensor_metadata(info) for info in outputs],
        }
        self._metrics = Metrics(name, replica)
        self._executor = ThreadPoolExecutor(1, "byoc_serve")
        self._parser = ThreadPoolExecutor(1, "byoc_parse")  # one document at a time: its memory
        self._batcher = Batcher(
            model,
            self._executor,
            most_rows=limits.batch_rows,
            most_waiting=limits.waiting,
            ran=self._metrics.ran,
        )

    def close(self) -> None:
        """Ends the threads that run the model and read requests."""
        self._executor.shutdown(cancel_futures=True)
        self._parser.shutdown(cancel_futures=True)

    def refuse_length(self, length: str | None) -> None:
        """Refuses a body by the header with its length, before the body is read.

        Raises:
            RequestTooLargeError: it is too long.
        """
        if length is not None and length.isdecimal():
            self._check_size(int(length[:20]))

    async def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Returns the answer to one request; errors become answers, too.

        Args:
            headers: header values; the names are in lower case.
        """
        start, is_inference = time.perf_counter(), path.endswith("/infer")
        kind = ""
        try:
            answer = await self._answer(method, path.strip("/").split("/"), headers, body)
        except ByocError as error:
            kind = type(error).__name__
            answer = Answer.of(described(error), status_of(error))
        except Exception as error:
            kind = type(error).__name__
            answer = Answer.of(described(translated(error, "serve")), 500)
        if is_inference:
            self._metrics.answered(answer.status, kind, time.perf_counter() - start)
        return answer

    async def _answer(
        self, method: str, path: list[str], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        match path:
            case ["v2"]:
                return _got(method, {"name": "byoc_mlir", "version": __version__, **_EXTENSIONS})
            case ["v2", "health", "live"]:
                return _got(method, {"live": True})
            case ["v2", "health", "ready"]:
                return _got(method, {"ready": True})
            case ["metrics"]:
                _check_method(method, "GET")
                text = self._metrics.text()
                return Answer(200, text, {"content-type": "text/plain; version=0.0.4"})
            case ["v2", "models", name, *rest]:
                self._check_model(name)
                return await self._of_model(method, _without_version(rest), headers, body)
            case _:
                raise UnknownPathError(f"there is nothing at '/{'/'.join(path)!s:.200}'")

    async def _of_model(
        self, method: str, path: list[str], headers: Mapping[str, str], body: bytes
    ) -> Answer:
        match path:
            case []:
                return _got(method, self._metadata)
            case ["ready"]:
                return _got(method, {"name": self._name, "ready": True})
            case ["infer"]:
                _check_method(method, "POST")
                return await self._in_time(self._infer(headers, body))
            case _:
                raise UnknownPathError(f"models have no '{'/'.join(path)!s:.200}'")

    async def _infer(self, headers: Mapping[str, str], body: bytes) -> Answer:
        self._check_size(len(body))
        run, elements = asyncio.get_running_loop().run_in_executor, self._limits.json_elements
        length, inputs = headers.get(HEADER_LENGTH), self._model.inputs
        read = partial(read_inference, body, length, inputs, self._outputs, elements)
        asked = read() if len(body) < _SMALL else await run(self._parser, read)
        outputs = await self._batcher.infer(asked.arrays)
        write = partial(inference_answer, self._name, asked, outputs, VERSION, elements)
        is_small = elements_of(outputs[name] for name in asked.outputs) < _SMALL
        return write() if is_small else await run(self._parser, write)

    async def _in_time(self, answer: Awaitable[Answer]) -> Answer:
        seconds = self._limits.seconds
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError as error:
            raise RequestTimeoutError(
                f"there is no answer after {seconds} s, which is the limit; send fewer rows at"
                " once, or let requests take longer"
            ) from error

    def _check_size(self, size: int) -> None:
        if size > self._limits.request_bytes:
            raise RequestTooLargeError(
                f"the request has {size} bytes, accepted are {self._limits.request_bytes}; send"
                " fewer rows at once, or let the server accept more"
            )

    def _check_model(self, name: str) -> None:
        if name != self._name:
            raise UnknownPathError(f"there is no model {name!r:.80}; there is '{self._name}'")


_EXTENSIONS: Mapping[str, Any] = {"extensions": ["binary_tensor_data"]}


def _without_version(path: list[str]) -> list[str]:
    if path[:1] != ["versions"]:
        return path
    if path[1:2] != [VERSION]:
        raise UnknownPathError(f"the model has no version {path[1:2]!r:.80}; it has '{VERSION}'")
    return path[2:]


def _got(method: str, document: Mapping[str, Any]) -> Answer:
    _check_method(method, "GET")
    return Answer.of(document)


def _check_method(method: str, accepted: str) -> None:
    if method != accepted:
        raise WrongMethodError(f"the method is {method!r:.20}, accepted is {accepted}")
