"""Why a request is refused, as the client hears it: a status of HTTP and a document."""

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
    """A request that is refused before the model runs."""

    status = 400


class UnknownPathError(RefusedRequestError):
    """Error for a path that does not exist, or names an unknown model."""

    status = 404


class WrongMethodError(RefusedRequestError):
    """The path is asked with another method."""

    status = 405


class RequestTooLargeError(RefusedRequestError):
    """The body has more bytes, or the tensors more rows, than a request may have."""

    status = 413


class RequestTimeoutError(RefusedRequestError):
    """The answer takes longer than a request may take."""

    status = 504


class OverloadedError(RefusedRequestError):
    """More requests wait than may; the client may ask again later."""

    status = 503


def status_of(error: ByocError) -> int:
    """Returns the status of HTTP for an error: what the client did wrong is 400 to 499.

    The server has compiled the model before, so that a model is refused for the request's sizes
    and values.
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
