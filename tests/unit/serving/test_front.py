"""Middleware in Ray's proxy: bodies are bounded, lost requests are repeated, errors are JSON."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import pytest

from byoc_mlir.ray.front import BYTES_VARIABLE, Front, Message, Receive, Send

PATH = "/v2/models/m/infer"
TEXT, JSON = b"text/plain", b"application/json"
_UNFINISHED = ["http.response.start", "http.response.body"]


class Proxy:
    """Application that sends the answers of a list, one after the other."""

    def __init__(self, *answers: tuple[int, bytes]):
        self.answers: Iterator[tuple[int, bytes]] = iter(answers)
        self.bodies: list[bytes] = []

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        self.bodies.append((await receive())["body"])
        status, kind = next(self.answers)
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]}
        )
        await send({"type": "http.response.body", "body": b"{}"})


def _asked(front: Front, chunks: Iterable[bytes] = (b"abc",), path: str = PATH) -> tuple[int, Any]:
    """Returns the status and the document that a client gets."""
    sent: list[Message] = []
    waiting = chain(chunks, [b""])

    async def receive() -> Message:
        chunk = next(waiting)
        return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(front({"type": "http", "path": path, "headers": []}, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_request_whose_replica_dies_is_repeated_once() -> None:
    proxy = Proxy((500, TEXT), (200, JSON))
    assert _asked(Front(proxy)) == (200, {})
    assert proxy.bodies == [b"abc", b"abc"]


@pytest.mark.parametrize("messages", [[], ["http.response.start"], _UNFINISHED])
def test_a_request_whose_answer_has_no_end_is_repeated_once(messages: Sequence[str]) -> None:
    tries: list[bytes] = []
    last = Proxy((200, JSON))

    async def proxy(scope: Message, receive: Receive, send: Send) -> None:
        if tries:
            await last(scope, receive, send)
            return
        tries.append((await receive())["body"])
        for kind in messages:
            start = {"type": kind, "status": 200, "headers": [(b"content-type", JSON)]}
            await send({**start, "body": b"{", "more_body": True})

    assert _asked(Front(proxy)) == (200, {})
    assert [*tries, *last.bodies] == [b"abc", b"abc"]


@pytest.mark.parametrize(
    ("answers", "status", "kind"),
    [
        ([(500, TEXT), (500, TEXT)], 500, "ExecutionError"),
        ([(408, TEXT)], 504, "RequestTimeoutError"),
        ([(503, TEXT)], 503, "OverloadedError"),
        ([(404, TEXT)], 500, "ExecutionError"),
    ],
)
def test_errors_of_ray_become_those_of_the_protocol(
    answers: Sequence[tuple[int, bytes]], status: int, kind: str
) -> None:
    found, document = _asked(Front(Proxy(*answers)))
    assert (found, document["type"]) == (status, kind)


@pytest.mark.parametrize("status", [400, 413, 500, 503])
def test_errors_of_replicas_pass(status: int) -> None:
    assert _asked(Front(Proxy((status, JSON)))) == (status, {})


def test_a_long_body_is_refused_while_it_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BYTES_VARIABLE, "10")
    proxy = Proxy((200, JSON), (200, JSON))
    front, taken = Front(proxy), list[int]()

    def chunks() -> Iterator[bytes]:
        for number in range(100):
            taken.append(number)
            yield b"1234"

    status, document = _asked(front, chunks())
    assert (status, document["type"]) == (413, "RequestTooLargeError")
    assert len(taken) == 3
    assert not proxy.bodies
    assert _asked(front, [b"1234567890"]) == (200, {})  # nothing of the long one is counted still
    assert front._held == 0  # pyright: ignore[reportPrivateUsage]


def test_other_paths_pass() -> None:
    assert _asked(Front(Proxy((500, TEXT))), path="/metrics") == (500, {})
