"""F(n x n, r x r): the points at which polynomials are evaluated, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Algorithm:
    """F(n x n, r x r) by the interpolation points 0, p, -p for each of `points`, and infinity."""

    points: tuple[float, ...]
    window: int
    """Its lines, and the pixels of each."""

    @property
    def step(self) -> int:
        """The pixels that a tile computes along each axis."""
        return self.tile - self.window + 1

    @property
    def tile(self) -> int:
        """The pixels that it reads."""
        return 2 * len(self.points) + 2

    @property
    def matrices(self) -> int:
        """How many products there are."""
        return self.tile**2

    @property
    def name(self) -> str:
        """`f4x3` for F(4 x 4, 3 x 3)."""
        return f"f{self.step}x{self.window}"

    def polynomial(self, *, without: float | None = None) -> list[float]:
        """The product of all y - p^2, or of all but one: the factors of 1, y, y^2, ..."""
        factors = np.ones(1)
        for point in self.points:
            if point != without:
                factors = np.convolve(factors, [-(point**2), 1.0])
        return factors.tolist()

    def weight_transform(self) -> NDArray[np.float64]:
        """The matrix `[tile, window]` from a line of the window to the points."""
        powers = np.arange(self.window)
        zero, infinity = np.eye(self.window)[[0, -1]]
        rows = [zero / self.polynomial()[0]]
        for point in self.points:
            others = np.polyval(self.polynomial(without=point)[::-1], point**2)
            scale = 1 / (2 * point**2 * float(others))
            rows += [scale * (sign * point) ** powers for sign in (1.0, -1.0)]
        return np.array([*rows, infinity])


ALGORITHMS: Mapping[str, Algorithm] = {
    one.name: one
    for one in (
        Algorithm((1,), 3),
        Algorithm((1, 2), 3),
        Algorithm((1, 2, 0.5), 3),
        Algorithm((1, 2, 0.5), 5),
    )
}
"""By name."""
