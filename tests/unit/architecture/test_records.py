"""Frozen dataclasses of the package are records, which are made quickly at import."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any

import pytest
from package_imports import trees

from byoc_mlir.records import record

_XDSL = frozenset(("AttrConstraint", "ModulePass", "Target"))
"""Frozen dataclasses of xDSL, from which no record may be derived."""


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0] for base in node.bases}


@cache
def _derived_from_xdsl() -> frozenset[str]:
    """Returns the names of xDSL's frozen dataclasses and of those derived from them."""
    classes = [
        node
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    found, before = _XDSL, frozenset[str]()
    while found != before:
        before, found = found, found | {node.name for node in classes if _bases(node) & found}
    return found


def _frozen(tree: ast.Module) -> Iterator[str]:
    """Yields the classes that the standard library freezes, without ordered ones and xDSL's."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not _bases(node) & _derived_from_xdsl():
            decorators = "".join(map(ast.unparse, node.decorator_list))
            if "frozen=True" in decorators and "order=True" not in decorators:
                yield node.name


def test_frozen_dataclasses_are_records() -> None:
    found = {file: [*_frozen(tree)] for file, tree in trees().items()}
    assert not {file: names for file, names in found.items() if names}


Maker = Callable[[type], type]


@pytest.fixture(params=[record, dataclass(frozen=True)], ids=["record", "dataclass"])
def make(request: pytest.FixtureRequest) -> Maker:
    return request.param


class _Point:
    x: int
    y: int = 2
    tags: Sequence[str] = field(default_factory=tuple, repr=False)
    note: str = field(default="", compare=False)
    _: KW_ONLY
    scale: float = 1.0


def _made(make: Maker) -> Any:
    """Returns a class of its own with the fields of `_Point`."""
    members = {name: value for name, value in vars(_Point).items() if name != "__dict__"}
    return make(type("Point", (), {**members, "__qualname__": "Point"}))


def test_arguments(make: Maker) -> None:
    point = _made(make)
    assert vars(point(1)) == {"x": 1, "y": 2, "tags": (), "note": "", "scale": 1.0}
    assert vars(point(1, 3, ["a"], "b", scale=2.0))["tags"] == ["a"]
    assert point(x=1, scale=3.0).scale == 3.0
    for arguments in ((), (1, 2, (), "", 1.0)):
        with pytest.raises(TypeError, match=r"Point.__init__\(\)"):
            point(*arguments)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        point(1, z=2)


def test_signature(make: Maker) -> None:
    parameters = inspect.signature(_made(make)).parameters
    assert [*parameters] == ["x", "y", "tags", "note", "scale"]
    assert parameters["y"].default == 2
    assert parameters["y"].annotation == "int"
    assert parameters["scale"].kind is inspect.Parameter.KEYWORD_ONLY


def test_comparison(make: Maker) -> None:
    point = _made(make)
    assert point(1) == point(1, note="other")
    assert hash(point(1)) == hash(point(1, note="other")) == hash((1, 2, (), 1.0))
    assert point(1) != point(2)
    assert point(1) != _made(make)(1)
    assert point(1).__eq__(1) is NotImplemented


def test_text(make: Maker) -> None:
    assert repr(_made(make)(1)) == "Point(x=1, y=2, note='', scale=1.0)"


def test_fields_stay(make: Maker) -> None:
    one = _made(make)(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        one.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del one.x


def test_functions_of_the_library(make: Maker) -> None:
    one = _made(make)(1)
    assert [item.name for item in fields(one)] == ["x", "y", "tags", "note", "scale"]
    assert asdict(one)["y"] == 2
    assert replace(one, y=5).y == 5
    assert copy(one) == deepcopy(one) == one


def test_functions_of_the_class_are_kept(make: Maker) -> None:
    @make
    class Even:
        number: int

        def __post_init__(self) -> None:
            if self.number % 2:
                raise ValueError("odd")

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Even)

        def __repr__(self) -> str:
            return "even"

        @cached_property
        def half(self) -> int:
            return self.number // 2

    with pytest.raises(ValueError, match="odd"):
        Even(1)
    assert Even(4).half == 2
    assert Even(4) == Even(6)
    assert repr(Even(2)) == "even"
    assert hash(Even(4)) == hash((4,))


def test_derived_classes() -> None:
    @record
    class Base:
        name: str

    @record
    class Derived(Base):
        size: int = 0

    assert Derived("a", 1) == Derived(name="a", size=1)
    assert Derived("a") != Base("a")


def test_identity() -> None:
    @record(eq=False)
    class Node:
        name: str

    node = Node("a")
    assert node != Node("a")
    assert {node: 1}[node] == 1


def test_no_fields() -> None:
    @record
    class Empty:
        pass

    assert Empty() == Empty()
    assert hash(Empty()) == hash(())
    assert repr(Empty()).endswith("Empty()")


def test_names_only() -> None:
    @record(kw_only=True)
    class Options:
        depth: int

    options: Any = Options
    assert options(depth=1).depth == 1
    with pytest.raises(TypeError, match="positional"):
        options(1)
