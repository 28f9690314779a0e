"""Calls of the package's functions with wrong arguments: errors name the accepted ones."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from one_node_models import X, one

import byoc_mlir
from byoc_mlir import Limits
from byoc_mlir.backends import Backend, load_backend_module
from byoc_mlir.errors import ByocError, InternalError
from byoc_mlir.runtime import Executable

compile_any: Callable[..., Executable] = byoc_mlir.compile
RELU = one("Relu")


class _Boom:
    def __array__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("boom")


class _Nameless(Backend):
    def op_rules(self) -> dict[str, Any]:
        return {}


@pytest.fixture(scope="module")
def fixed() -> Executable:
    return byoc_mlir.compile(RELU, targets=())


@pytest.fixture(scope="module")
def symbolic() -> Executable:
    return byoc_mlir.compile(one("Relu", ("n", 3)), targets=())


def _refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ByocError, match=message) as caught:
        call()
    assert not isinstance(caught.value, InternalError)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (None, r"the model is None \(NoneType\); accepted is the path"),
        (5, r"the model is 5 \(int\)"),
        (io.BytesIO(b""), "the model is .*BytesIO"),
        ([RELU], "the model is "),
        ("", "'' cannot be read"),
        ("no\0path", "it is no path"),
        ("/nope.onnx", "'/nope.onnx' cannot be read: No such file"),
        ("/nope.mlir", "'/nope.mlir' cannot be read: No such file"),
        ("/", "it is a directory, accepted are regular files"),
        ("/dev/zero", "it is a device"),
        (b"", r"the bytes: not an ONNX model"),
        (b"\xff" * 9, r"the bytes: not an ONNX model"),
    ],
)
def test_models(model: object, message: str) -> None:
    _refused(lambda: compile_any(model, targets=()), message)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"targets": 5}, "targets is 5, accepted is a sequence"),
        ({"targets": "dnnl"}, r"targets must be a sequence of names, as \('dnnl',\)"),
        ({"targets": [5]}, r"targets is \[5\], accepted is a sequence"),
        ({"targets": ("",)}, "''"),
        ({"targets": ("nobody",)}, "no backend is named 'nobody'"),
        ({"targets": ("reference", "reference")}, "name a backend twice"),
        ({"threads": "2"}, "threads is '2', accepted are whole numbers, at least 1, or None"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": True}, "threads is True"),
        ({"threads": 2**200}, r"the limit is \d+; to raise it, pass limits=byoc_mlir.Limits"),
        ({"precision": None}, r"precision is None \(NoneType\); accepted is text"),
        ({"precision": "f8"}, "precision is 'f8', accepted are 'f32', 'bf16', 'bf16x3'"),
        ({"precision": "tf32"}, r"no target computes in precision='tf32' \(.*accepted .* 'f32'"),
        ({"fallback": "maybe"}, "fallback is 'maybe', accepted are 'allow', 'warn', 'forbid'"),
        ({"fallback": 1}, "fallback is 1"),
        ({"prune": "all"}, "prune is 'all', accepted are"),
        ({"backend_options": 5}, "backend_options is 5, accepted is a dictionary"),
        ({"backend_options": {"dnnl": 5}, "targets": ("dnnl",)}, "accepted is a dictionary of"),
        ({"backend_options": {"dnnl": {}}, "targets": ()}, "which is none of the targets"),
        ({"cache": "/dev/null"}, "the cache folder '/dev/null' cannot be made"),
        ({"cache": 5}, r"cache is 5 \(int\); accepted is the path of a folder"),
        ({"limits": 5}, r"limits is 5 \(int\); accepted is a byoc_mlir.Limits"),
        ({"limits": Limits(seconds=0)}, "compiling takes too long"),
    ],
)
def test_arguments_of_compile(arguments: dict[str, Any], message: str) -> None:
    _refused(lambda: compile_any(RELU, **arguments), message)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (None, "found NoneType"),
        (5, "found int"),
        ("x", "found str"),
        ({}, r"missing input\(s\) x"),
        ([], r"the model takes 1 inputs \(x\), found 0"),
        ([X, X], "found 2"),
        ({1: X}, r"unknown input\(s\) 1; missing input\(s\) x"),
        ({"x": None}, "the NoneType that was found makes none: it holds None"),
        ({"x": "text"}, "must be an array of x"),
        ({"x": _Boom()}, "the _Boom that was found makes none: boom"),
        ({"x": X.astype(np.float64)}, r"convert it with .astype\('float32'\)"),
        ({"x": np.ones(4, np.float32)}, r"must have shape \[3\], found \[4\]"),
        ({"x": [1.0, [2.0], 3.0]}, "must be an array of x"),
    ],
)
def test_inputs_of_run(fixed: Executable, inputs: Any, message: str) -> None:
    _refused(lambda: fixed.run(inputs), message)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (None, "shapes is None"),
        ({}, r"no shape is given for input\(s\) x"),
        ({"x": 3}, r"must have shape \[n, 3\], found \[3\]"),
        ({"x": (2.0, 3)}, "accepted are whole numbers of 0 and more"),
        ({"x": (-1, 3)}, "accepted are whole numbers of 0 and more"),
        ({"x": "abc"}, "accepted are whole numbers of 0 and more"),
    ],
)
def test_shapes_of_warmup(symbolic: Executable, shapes: Any, message: str) -> None:
    _refused(lambda: symbolic.warmup(shapes), message)


@pytest.mark.parametrize(
    ("path", "threads", "message"),
    [
        ("/", None, "it is a directory"),
        ("/nope.so", None, "'/nope.so' cannot be read"),
        (None, None, "the path is None"),
        (__file__, None, "is not a compiled model"),
        (__file__, "2", "threads is '2'"),
    ],
)
def test_load(path: Any, threads: Any, message: str) -> None:
    _refused(lambda: byoc_mlir.load(path, threads), message)


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        (5, r"the backend is 5 \(int\); accepted is a class derived from Backend"),
        (int, "int is no backend: it is not derived from Backend"),
        (_Nameless, "`name` must be a non-empty string"),
    ],
)
def test_register_backend(backend: Any, message: str) -> None:
    _refused(lambda: byoc_mlir.register_backend(backend), message)


def test_backend_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("raise KeyError('card')")
    _refused(lambda: load_backend_module(str(file)), "cannot be loaded: KeyError: 'card'")
    file.write_text("def")
    _refused(lambda: load_backend_module(str(file)), "cannot be loaded: SyntaxError")


@pytest.mark.parametrize(
    "setting", [{"nodes": -1}, {"nodes": 1.5}, {"threads": True}, {"seconds": float("nan")}]
)
def test_limits(setting: dict[str, Any]) -> None:
    _refused(lambda: Limits(**setting), "accepted is a")
