"""Sizes that a program takes as arguments: their conditions, and the shapes that depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from byoc_mlir.dims import GREATEST_SIZE, LEAST_HINT, Guard, Size, SymbolInfo, symbol
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.locks import cached_property
from byoc_mlir.tensors import TensorInfo


@dataclass(frozen=True)
class LimitedTensor:
    """Tensor of the model that may exceed the limits."""

    sizes: tuple[Size, ...]
    item_bytes: int
    what: str
    node: str | None


@dataclass(frozen=True)
class SymbolicSizes:
    """Symbolic sizes of a program, with their conditions and the tensors that they may make too
    large.
    """

    symbols: tuple[SymbolInfo, ...]
    """Symbols in the order in which native code takes their sizes."""
    guards: tuple[Guard, ...]
    arena: Size
    """Size of the arena in bytes."""
    tensors: tuple[LimitedTensor, ...] = ()
    """Tensors that are checked, if the limit is less than the address space."""
    work: tuple[tuple[Size, Size], ...] = ()
    """MACs and bytes of each timed step."""

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Returns the text that stands for each symbol in shapes."""
        return {info.name: str(symbol(info.name)) for info in self.symbols}

    def of(self, inputs: Sequence[TensorInfo], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
        """Returns the size of each symbol for the shapes of a program's inputs.

        Raises:
            InvalidInputError: two inputs disagree about a size.
        """
        found: dict[str, tuple[int, str]] = {}
        for info, shape in zip(inputs, shapes, strict=True):
            for axis, name in enumerate(info.shape):
                if isinstance(name, int):
                    continue
                known, where = found.setdefault(name, (shape[axis], info.name))
                if known != shape[axis]:
                    raise InvalidInputError(
                        f"dimension {axis} of input '{info.name}' is '{name}', which is {known} in"
                        f" input '{where}'; found {shape[axis]}"
                    )
        return {name: found[text][0] for name, text in self.texts.items()}

    @property
    def conditions(self) -> tuple[str, ...]:
        """Returns the conditions on sizes as text, except that sizes are at least 0."""
        infos, texts = self.symbols, self.texts
        least = [f"{info.min} <= {texts[info.name]}" for info in infos if info.min > 0]
        most = [f"{texts[info.name]} <= {info.max}" for info in infos if info.max is not None]
        return (*least, *most, *map(str, self.guards))

    def accept(self, sizes: Mapping[str, int]) -> bool:
        """True if the program is valid for these sizes of its symbols."""
        return all(_within(info, sizes[info.name]) for info in self.symbols) and all(
            guard.holds(sizes) for guard in self.guards
        )

    def decide_alike(self, sizes: Mapping[str, int]) -> bool:
        """True if a compilation with these sizes as hints would generate the same program.

        Hints are at least 2, so smaller sizes count as 2.
        """
        return self.accept({name: max(LEAST_HINT, size) for name, size in sizes.items()})


def _within(info: SymbolInfo, size: int) -> bool:
    least, greatest = info.range
    return least <= size <= min(greatest, GREATEST_SIZE)
