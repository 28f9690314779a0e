"""The sizes of a program that takes them as arguments, as a document: sizes are text in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast, get_args

from byoc_mlir.dims import Guard, Relation, Size, SymbolInfo, parse_size
from byoc_mlir.errors import InvalidArtifactError, UndecidedSizeError
from byoc_mlir.limits import Limits
from byoc_mlir.runtime.executables.sized import SizedProgram, SizedTensor
from byoc_mlir.runtime.program import Program

SIZES = "sizes"
"""Under which a document has them."""

_Shape: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class StoredGuard:
    """A guard as text."""

    one: str
    relation: str
    two: str
    reason: str


@dataclass(frozen=True)
class StoredTensor:
    """A tensor that a limit holds for."""

    sizes: _Shape
    item_bytes: int
    what: str
    node: str | None


@dataclass(frozen=True)
class StoredSizes:
    """All that a `SizedProgram` has beside the program and the limits."""

    symbols: tuple[SymbolInfo, ...]
    guards: tuple[StoredGuard, ...]
    inputs: tuple[_Shape, ...]
    outputs: tuple[_Shape, ...]
    arena: str
    tensors: tuple[StoredTensor, ...]
    work: tuple[tuple[str, str], ...]

    @staticmethod
    def of(sized: SizedProgram) -> StoredSizes:
        """The sizes of a program."""
        return StoredSizes(
            sized.symbols,
            tuple(
                StoredGuard(str(one.one), one.relation, str(one.two), one.reason)
                for one in sized.guards
            ),
            tuple(map(_texts, sized.inputs)),
            tuple(map(_texts, sized.outputs)),
            str(sized.arena),
            tuple(
                StoredTensor(_texts(one.sizes), one.item_bytes, one.what, one.node)
                for one in sized.tensors
            ),
            tuple((str(products), str(moved)) for products, moved in sized.work),
        )

    def program(self, program: Program, limits: Limits) -> SizedProgram:
        """The program that has these sizes.

        Raises:
            InvalidArtifactError: a text says no size, or no relation.
        """
        try:
            return SizedProgram(
                program,
                self.symbols,
                tuple(map(_guard, self.guards)),
                tuple(map(_sizes, self.inputs)),
                tuple(map(_sizes, self.outputs)),
                parse_size(self.arena),
                limits,
                tuple(
                    SizedTensor(_sizes(one.sizes), one.item_bytes, one.what, one.node)
                    for one in self.tensors
                ),
                tuple((parse_size(products), parse_size(moved)) for products, moved in self.work),
            )
        except UndecidedSizeError as error:
            raise InvalidArtifactError(f"the sizes of a program: {error}") from error


def _texts(sizes: Sequence[Size]) -> _Shape:
    return tuple(map(str, sizes))


def _sizes(texts: Sequence[str]) -> tuple[Size, ...]:
    return tuple(map(parse_size, texts))


def _guard(stored: StoredGuard) -> Guard:
    if stored.relation not in get_args(Relation):
        raise InvalidArtifactError(f"'{stored.relation}' is no relation of two sizes")
    relation = cast(Relation, stored.relation)
    return Guard(parse_size(stored.one), relation, parse_size(stored.two), stored.reason)
