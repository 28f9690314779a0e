"""Records: frozen dataclasses whose classes are made quickly.

`dataclass(frozen=True)` composes and compiles six functions for each class, 1 ms at import, and a
compilation imports some two hundred classes. Here only `__init__` is compiled; the other functions
are closures over the fields' names. `fields`, `replace` and `asdict` work as for all dataclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import partial
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform, overload

if TYPE_CHECKING:
    from dataclasses import Field

    from _typeshed import DataclassInstance

T = TypeVar("T")

_ABSENT = object()
"""Stands for an argument that is not given and has a factory."""


@overload
def record(made: type[T], /) -> type[T]: ...
@overload
def record(*, eq: bool = True, kw_only: bool = False) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(
    made: type[T] | None = None, /, *, eq: bool = True, kw_only: bool = False
) -> type[T] | Callable[[type[T]], type[T]]:
    """Converts a class to a frozen dataclass; functions that the class defines are kept.

    Classes derived from a `dataclass(frozen=True)`, such as xDSL's passes and attributes, cannot be
    records.

    Args:
        eq: compare and hash the fields, not the identity.
        kw_only: take all fields by name.
    """

    def of(cls: type[T]) -> type[T]:
        dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
        all_fields = fields(cast("type[DataclassInstance]", cls))
        functions: dict[str, object] = {
            "__init__": _initialiser(cls, all_fields),
            "__repr__": _representation([one.name for one in all_fields if one.repr]),
            "__setattr__": _refuse_assignment,
            "__delattr__": _refuse_deletion,
        }
        if eq:
            functions |= _comparison([one.name for one in all_fields if one.compare])
        for name, function in functions.items():
            if cls.__dict__.get(name) is None:  # Python sets `__hash__ = None` beside an `__eq__`
                setattr(cls, name, function)
        return cls

    return of if made is None else of(made)


def _initialiser(cls: type, taken: Sequence[Field[Any]]) -> Callable[..., None]:
    """Returns `__init__`, which takes the fields as arguments."""
    taken = sorted(taken, key=lambda one: bool(one.kw_only))
    named = [bool(one.kw_only) for one in taken]
    arguments = ["self", *map(_argument, taken)]
    if True in named:
        arguments.insert(1 + named.index(True), "*")
    values = ", ".join(f"{one.name}={_value(one)}" for one in taken)
    after = "\n    self.__post_init__()" if hasattr(cls, "__post_init__") else ""
    text = f"def __init__({', '.join(arguments)}):\n    self.__dict__.update({values}){after}"
    scope: dict[str, Any] = {"_ABSENT": _ABSENT}
    scope |= {f"_default_{one.name}": one.default for one in taken}
    scope |= {f"_new_{one.name}": one.default_factory for one in taken}
    exec(text, scope)  # the names are those of the class
    made: Callable[..., None] = scope["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {one.name: one.type for one in taken} | {"return": None}
    return made


def _argument(one: Field[Any]) -> str:
    if one.default is not MISSING:
        return f"{one.name}=_default_{one.name}"
    return one.name if one.default_factory is MISSING else f"{one.name}=_ABSENT"


def _value(one: Field[Any]) -> str:
    if one.default_factory is MISSING:
        return one.name
    return f"_new_{one.name}() if {one.name} is _ABSENT else {one.name}"


def _representation(names: list[str]) -> Callable[[object], str]:
    @recursive_repr()
    def represent(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return represent


def _comparison(names: list[str]) -> dict[str, object]:
    """Returns `__eq__` and `__hash__`, which compare and hash the fields as a tuple."""
    values: Callable[[object], object]
    values = attrgetter(*names) if len(names) > 1 else partial(_few_values, names)

    def equals(self: object, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def to_hash(self: object) -> int:
        return hash(values(self))

    return {"__eq__": equals, "__hash__": to_hash}


def _few_values(names: list[str], self: object) -> tuple[object, ...]:
    """Returns the values of fewer fields than `attrgetter` makes a tuple of."""
    return tuple(getattr(self, name) for name in names)


def _refuse_assignment(_: object, name: str, value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
