"""Claims of a backend: results of rules and checks, names of ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from examplejson.backend import ExampleJsonBackend

import byoc_mlir
from byoc_mlir.backends import Backend, Rule, register_backend
from byoc_mlir.backends.op_names import unknown_ops
from byoc_mlir.backends.region import elementwise_f32
from byoc_mlir.backends.registry import ENTRY_POINT_GROUP, get_backend
from byoc_mlir.errors import BackendError
from byoc_mlir.installed import installed_points
from byoc_mlir.patterns import CompositePattern, is_op, wildcard
from byoc_mlir.testing.networks import GraphBuilder


def _backend(claims_name: str, **members: object) -> type[Backend]:
    made: Any = type(claims_name, (ExampleJsonBackend,), {"name": claims_name, **members})
    return register_backend(made)


def _compiled(target: str) -> byoc_mlir.Executable:
    b = GraphBuilder("one_relu", seed=1)
    b.output(b.op("Relu", b.input("x", [3, 4])), "out", [3, 4])
    return byoc_mlir.compile(b.build(), targets=(target,), fallback="allow")


@pytest.mark.parametrize("answer", [True, False, 1, ("no",)])
def test_a_rule_answers_none_or_a_reason(answer: object) -> None:
    rules: Mapping[str, Callable[[object], object]] = {"nn.relu": lambda op: answer}
    _backend("claims_rule", op_rules=lambda self: rules)
    with pytest.raises(BackendError) as raised:
        _compiled("claims_rule")
    assert f"for nn.relu returned {answer!r}; it must return None to accept" in str(raised.value)


def test_a_check_answers_none_or_a_reason() -> None:
    check: Any = lambda match: True  # noqa: E731
    row = CompositePattern("claims_check.relu", is_op("nn.relu")(wildcard()), check)
    _backend("claims_check", patterns=lambda self: [row])
    with pytest.raises(BackendError, match=r"'claims_check\.relu' returned True; it must return"):
        _compiled("claims_check")


@pytest.mark.parametrize("name", [point.name for point in installed_points(ENTRY_POINT_GROUP)])
def test_our_backends_name_ops_that_there_are(name: str) -> None:
    assert not unknown_ops(get_backend(name))


def test_names_that_no_op_has() -> None:
    rules: Mapping[str, Rule] = {"nn.rleu": elementwise_f32, "nn.relu": elementwise_f32}
    inner = is_op("nn.con2d")(wildcard(), wildcard())
    row = CompositePattern("claims_names.conv", is_op("nn.relu")(inner) | inner)
    backend = _backend("claims_names", op_rules=lambda self: rules, patterns=lambda self: [row])
    assert list(unknown_ops(backend())) == [
        ("nn.rleu", "there is no Relay op 'nn.rleu'; did you mean 'nn.relu'?"),
        ("claims_names.conv", "there is no Relay op 'nn.con2d'; did you mean 'nn.conv2d'?"),
    ]
    with _compiled("claims_names") as executable:
        said = " ".join(executable.report().warnings)
    assert "backend 'claims_names', nn.rleu: there is no Relay op 'nn.rleu'" in said
