"""Middleware of Ray Serve's proxy, in front of replicas: bounds bodies and repeats lost
requests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from byoc_mlir.errors import ByocError, ExecutionError, InvalidInputError
from byoc_mlir.extras import import_extra
from byoc_mlir.ray.protocol import Answer
from byoc_mlir.ray.refusals import (
    OverloadedError,
    RequestTimeoutError,
    RequestTooLargeError,
    described,
    status_of,
)
from byoc_mlir.ray.served import EXTRA

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

IMPORT_PATH = f"{__name__}.middlewares"
BYTES_VARIABLE = "BYOC_SERVE_REQUEST_BYTES"
"""Environment variable for the maximum length of a body, since Ray passes no arguments."""

_DEFAULT_BYTES = 64 << 20
_MOST_BODIES = 8
"""Maximum number of bodies of full length in memory at the same time."""
_BODY_SECONDS = 60
"""Maximum time in seconds until a body is complete."""
_TRIES = 2
"""Maximum number of tries: a request whose replica dies is repeated once, since inference changes
nothing.
"""


class Front:
    """ASGI application around another one, for the paths of the protocol.

    Args:
        app: the other application: Ray's proxy, which passes requests to replicas.
    """

    def __init__(self, app: App):
        self._app = app
        self._most = int(os.environ.get(BYTES_VARIABLE) or _DEFAULT_BYTES)
        self._held = 0

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http" or "/v2/" not in f"{scope['path']}/":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        try:
            await asyncio.wait_for(self._read(body, receive), _BODY_SECONDS)
            messages = await self._answer(scope, bytes(body), receive)
        except TimeoutError:
            late = RequestTimeoutError(f"the body is not complete after {_BODY_SECONDS} s")
            messages = _messages(late)
        except ByocError as error:
            messages = _messages(error)
        finally:
            self._held -= len(body)
        for message in messages:
            await send(message)

    async def _read(self, body: bytearray, receive: Receive) -> None:
        """Reads the body and appends it to `body`.

        Raises:
            RequestTooLargeError: it is too long.
            OverloadedError: there are too many others.
            InvalidInputError: it ends too early.
        """
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise InvalidInputError("the client is gone before the request is complete")
            chunk = message.get("body", b"")
            body += chunk
            self._held += len(chunk)
            if len(body) > self._most:
                raise RequestTooLargeError(
                    f"the request has more than {self._most} bytes; send fewer rows at once, or let"
                    " the server accept more"
                )
            if self._held > _MOST_BODIES * self._most:
                raise OverloadedError("too many requests arrive; ask again later")
            more = message.get("more_body", False)

    async def _answer(self, scope: Message, body: bytes, receive: Receive) -> list[Message]:
        status = 500
        for _ in range(_TRIES):
            request = _Request(body, receive)
            await self._app(dict(scope), request.receive, request.send)
            status = request.status_of_ray
            if status is None:
                return request.messages
            if status != 500:
                break
        return _messages(_of_ray(status or 500))


@dataclass
class _Request:
    """State of one try: the body for the application, and the messages of its answer."""

    body: bytes
    then: Receive
    """Receiver of the message after the body: that the client is gone."""
    messages: list[Message] = field(default_factory=list[Message])
    is_read: bool = False

    async def receive(self) -> Message:
        if self.is_read:
            return await self.then()
        self.is_read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def send(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status_of_ray(self) -> int | None:
        """Returns the status of an error that Ray itself sends, 500 if a replica died; `None` for a
        replica's answer.

        If a replica dies, Ray may send nothing, or an answer without its end.
        """
        last = self.messages[-1] if self.messages else {}
        if last.get("type") != "http.response.body" or last.get("more_body"):
            return 500
        start = self.messages[0]
        types = [value for name, value in start["headers"] if name.lower() == b"content-type"]
        is_ours = start["status"] < 400 or types[:1] == [b"application/json"]
        return None if is_ours else start["status"]


def _of_ray(status: int) -> ByocError:
    """Returns the error for an answer that comes from Ray and not from a replica."""
    if status == 408:
        return RequestTimeoutError("no replica answers in time; ask again later")
    if status == 503:
        return OverloadedError("no replica takes the request; ask again later")
    return ExecutionError(f"the replica does not answer (Ray's status is {status})")


def _messages(error: ByocError) -> list[Message]:
    """Returns the messages by which an application sends an error of the protocol."""
    answer = Answer.of(described(error), status_of(error))
    headers = [
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
        (b"content-length", str(len(answer.body)).encode()),
        (b"connection", b"close"),  # what is left of the body is not read
    ]
    return [
        {"type": "http.response.start", "status": answer.status, "headers": headers},
        {"type": "http.response.body", "body": answer.body},
    ]


def middlewares() -> list[Any]:
    """Returns the middlewares for Ray Serve's proxy, which calls this by its import path."""
    return [import_extra("starlette.middleware", EXTRA).Middleware(Front)]
