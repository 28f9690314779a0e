"""What `compile` may be asked is what it documents."""

from __future__ import annotations

import inspect
from dataclasses import asdict

import byoc_mlir
from byoc_mlir.compiler.request import Request
from byoc_mlir.limits import DEFAULT_LIMITS

_WHEN_LEFT_OUT = {"backend_options": {}, "limits": DEFAULT_LIMITS, "sizes": {}}
"""What `None` stands for."""


def test_a_request_leaves_out_what_compile_leaves_out() -> None:
    parameters = inspect.signature(byoc_mlir.compile).parameters
    request = asdict(Request(b"model")) | {"limits": Request(b"model").limits}
    del request["model"]
    for name, value in request.items():
        default = parameters[name].default
        assert value == (_WHEN_LEFT_OUT[name] if default is None and value is not None else default)
