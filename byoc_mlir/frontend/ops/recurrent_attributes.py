"""The attributes that recurrent ops share, and what they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from byoc_mlir.frontend.ops.activations import DEFAULTS, Activation, activation_of
from byoc_mlir.frontend.value import NodeRefused


@dataclass(frozen=True, kw_only=True)
class CellAttributes:
    """What a step computes, and in which order steps run."""

    activation_alpha: Sequence[float] | None = None
    activation_beta: Sequence[float] | None = None
    activations: Sequence[str] | None = None
    clip: float | None = None
    direction: str = "forward"
    hidden_size: int | None = None

    @property
    def directions(self) -> int:
        """1 or 2.

        Raises:
            NodeRefused: there is no such direction.
        """
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise NodeRefused(f"direction '{self.direction}' is not supported")
        return 2 if self.direction == "bidirectional" else 1

    def are_usual(self, defaults: Sequence[str]) -> bool:
        """Whether nothing is clipped, and the activations are these, for all directions."""
        expected = [name.lower() for name in defaults] * self.directions
        names = self.activations
        return self.clip is None and (names is None or [name.lower() for name in names] == expected)

    def functions(self, defaults: Sequence[str]) -> list[list[Activation]]:
        """The activations of each direction. Alphas and betas go to those that have some, in order.

        Args:
            defaults: the names of those of one direction, where the node has none.

        Raises:
            NodeRefused: there are more or fewer, or one is not known.
        """
        wanted = len(defaults) * self.directions
        listed = list(self.activations or [*defaults] * self.directions)
        if len(listed) != wanted:
            raise NodeRefused(f"{wanted} activations are needed, found {listed}")
        given = iter(self.activation_alpha or ()), iter(self.activation_beta or ())
        built: list[Activation] = []
        for name in listed:
            count = len(DEFAULTS.get(name.lower(), ()))
            own = [next(numbers, None) for numbers in given[:count]]
            built.append(activation_of(name, *own))
        return [built[at : at + len(defaults)] for at in range(0, len(listed), len(defaults))]


@dataclass(frozen=True, kw_only=True)
class RecurrentAttributes(CellAttributes):
    """The attributes of ONNX's recurrent ops."""

    layout: int = 0
    """1: the batch comes before the time."""
    output_sequence: int = 0
