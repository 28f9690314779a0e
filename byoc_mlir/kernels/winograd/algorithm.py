"""F(n x n, r x r): interpolation points of Winograd's algorithm, and the transforms they define."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Algorithm:
    """F(n x n, r x r) with the interpolation points 0, infinity, and p and -p for each p of
    `points`.
    """

    points: tuple[float, ...]
    window: int
    """Rows of the convolution's window, and pixels of each row."""

    @property
    def step(self) -> int:
        """Returns n, the result pixels of a tile along each axis."""
        return self.tile - self.window + 1

    @property
    def tile(self) -> int:
        """Returns n + r - 1, the source pixels of a tile along each axis."""
        return 2 * len(self.points) + 2

    @property
    def matrices(self) -> int:
        """Returns the number of matrix products."""
        return self.tile**2

    @property
    def name(self) -> str:
        """Returns the name, for example `f4x3` for F(4 x 4, 3 x 3)."""
        return f"f{self.step}x{self.window}"

    def polynomial(self, *, without: float | None = None) -> list[float]:
        """Returns the coefficients of 1, y, y^2, ... in the product of all y - p^2.

        With `without`, the product omits that point's factor.
        """
        factors = np.ones(1)
        for point in self.points:
            if point != without:
                factors = np.convolve(factors, [-(point**2), 1.0])
        return factors.tolist()

    def weight_transform(self) -> NDArray[np.float64]:
        """Returns the matrix `[tile, window]` that transforms a row of the window to the points."""
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
"""Algorithms by name."""
