"""Refusals of requests, as the client receives them: a status of HTTP and a document."""

from __future__ import annotations

from byoc_mlir.errors import (
    ByocError,
    InvalidInputError,
    InvalidModelError,
    LimitExceededError,
    OutOfMemoryError,
    UnsupportedModelError,
)


class RefusedRequestError(ByocError):
    """Error of a request that is refused before the model runs."""

    status = 400


class UnknownPathError(RefusedRequestError):
    """Error for a path that does not exist, or names an unknown model."""

    status = 404


class WrongMethodError(RefusedRequestError):
    """Error for a path that was requested with another method."""

    status = 405


class RequestTooLargeError(RefusedRequestError):
    """Error of a request whose body has too many bytes, or whose tensors have too many rows."""

    status = 413


class RequestTimeoutError(RefusedRequestError):
    """Error of a request that takes longer than the time limit."""

    status = 504


class OverloadedError(RefusedRequestError):
    """Error of a request beyond the queue's limit; the client may try again later."""

    status = 503


def status_of(error: ByocError) -> int:
    """Returns the HTTP status of an error: 400 to 499 for errors of the client.

    The server has compiled the model before, so a model's refusal is due to the request's sizes and
    values.
    """
    if isinstance(error, RefusedRequestError):
        return error.status
    if isinstance(error, LimitExceededError):
        return 413
    if isinstance(error, InvalidInputError | InvalidModelError | UnsupportedModelError):
        return 400
    return 503 if isinstance(error, OutOfMemoryError) else 500


def described(error: ByocError) -> dict[str, str]:
    """Returns the JSON document for an error: the message as `error`, its class as `type`, and its
    ONNX node.
    """
    document = {"error": str(error), "type": type(error).__name__}
    return {**document, "node": error.node} if error.node else document
