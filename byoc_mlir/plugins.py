"""Classes that users register in the process, or that packages install as entry points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Generic, TypeVar

from byoc_mlir.boundary import check_argument
from byoc_mlir.errors import ByocError
from byoc_mlir.installed import installed_points
from byoc_mlir.names import written_at

Base = TypeVar("Base")


@dataclass(frozen=True)
class Plugins(Generic[Base]):
    """Classes of one kind, by name."""

    kind: str
    """Word for such a class in errors: `backend`."""
    base: type[Base]
    group: str
    """Group of entry points."""
    error: type[ByocError] = ByocError
    registered: dict[str, type[Base]] = field(default_factory=dict[str, "type[Base]"])
    """Classes that the process has loaded or registered."""

    def check(self, cls: type, accepted: str) -> None:
        """Checks that a class is derived from the base; `accepted` names the base."""
        check_argument(
            f"the {self.kind}", cls, type, f"a class derived from {accepted}", self.error
        )
        if self.base not in cls.__mro__:
            raise self.error(
                f"{cls.__name__} is no {self.kind}: it is not derived from {self.base.__name__}"
            )

    def add(self, name: str, cls: type[Base]) -> None:
        """Adds a checked class. One that is defined again, as in a notebook, replaces its earlier
        version.

        Raises:
            ByocError: another class has the name; of the type `error`.
        """
        known = self.registered.get(name)
        if known is not None and written_at(known) != written_at(cls):
            raise self.error(
                f"a {self.kind} named '{name}' is registered already; choose another name"
            )
        self.registered[name] = cls

    def names(self) -> list[str]:
        """Returns the names of all known classes, sorted; installed ones need not be loaded."""
        return sorted({*self.registered, *(point.name for point in installed_points(self.group))})

    def find(self, name: str, load: Callable[[EntryPoint], object]) -> type[Base] | None:
        """Returns the class of a name, or `None`.

        Args:
            load: function that loads the class of an entry point and registers it.
        """
        if name not in self.registered:
            for point in installed_points(self.group):
                if point.name == name:
                    load(point)
        return self.registered.get(name)
