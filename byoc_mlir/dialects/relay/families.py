"""Tables of functions of `relay` ops, imported family by family, when an op needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import Generic, TypeVar

from byoc_mlir.dialects.relay.base import RelayOp
from byoc_mlir.locks import cached_property

T = TypeVar("T")


@dataclass(frozen=True)
class OpTable(Generic[T]):
    """Table from ops to functions, in a package with a file for each family of the dialect.

    A file has the name of its family, and a table `FUNCTIONS` by class of op. It is imported when
    an op of its family is looked up: most models have ops of few families.
    """

    package: str
    files: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """Files of a family, if they are not the one of the same name."""

    def get(self, op: type[RelayOp]) -> T | None:
        """Returns the function of a class of ops, or `None` if the table has none."""
        family = op.__module__.rpartition(".")[2]
        for name in self.files.get(family, (family,)):
            if name in self._names:
                functions = import_module(f"{self.package}.{name}").FUNCTIONS
                if op in functions:
                    return functions[op]
        return None

    @cached_property
    def _names(self) -> frozenset[str]:
        """Returns the names of the package's files."""
        return frozenset(info.name for info in iter_modules(import_module(self.package).__path__))
