"""Offsets of the windows for consecutive result pixels, which may continue in the next row or
image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from byoc_mlir.kernels.builder import FunctionBuilder
from byoc_mlir.kernels.integer_gemm.parameters import IntegerGemmParameters


@dataclass(frozen=True)
class Places:
    """Writer of offsets, in elements of operand A, for consecutive rows of the GEMM."""

    function: FunctionBuilder
    parameters: IntegerGemmParameters[SSAValue]
    rows: int

    def of(self, row: SSAValue) -> Sequence[SSAValue]:
        """Computes the offsets of `rows` consecutive GEMM rows, the first of which is `row`."""
        function, parameters = self.function, self.parameters
        line, x = function.divmod(row, parameters.width)
        image, y = function.divmod(line, parameters.height)
        place = function.add(
            function.multiply(image, parameters.image),
            function.add(
                function.multiply(y, parameters.line), function.multiply(x, parameters.pixel)
            ),
        )
        is_in_line = function.compare("sle", function.add(x, self.rows), parameters.width)
        return function.branch(
            is_in_line,
            lambda: self.in_line(place),
            lambda: self._over_ends(place, x, y),
            *[i64] * self.rows,
        )

    def in_line(self, place: SSAValue) -> list[SSAValue]:
        """Computes the offsets of consecutive GEMM rows whose pixels lie in one image row."""
        function, pixel = self.function, self.parameters.pixel
        return [
            function.add(place, function.multiply(pixel, number)) for number in range(self.rows)
        ]

    def _over_ends(self, place: SSAValue, x: SSAValue, y: SSAValue) -> list[SSAValue]:
        function, parameters = self.function, self.parameters
        next_line = function.subtract(
            parameters.line, function.multiply(parameters.width, parameters.pixel)
        )
        next_image = function.subtract(
            parameters.image, function.multiply(parameters.height, parameters.line)
        )
        places = [place]
        for _ in range(1, self.rows):
            place = function.add(place, parameters.pixel)
            x, y, place = self._carried(function.add(x, 1), parameters.width, y, place, next_line)
            y, _, place = self._carried(y, parameters.height, y, place, next_image)
            places.append(place)
        return places

    def _carried(
        self,
        low: SSAValue,
        limit: SSAValue,
        high: SSAValue,
        place: SSAValue,
        distance: SSAValue,
    ) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Carries `low` into `high` when it reaches `limit`, and moves the offset by `distance`.

        Returns the new `low`, `high` and offset. `distance` leads from the end of one `high` step
        to the start of the next.
        """
        function = self.function
        is_full = function.compare("eq", low, limit)
        return (
            function.select(is_full, function.integer(0), low),
            function.select(is_full, function.add(high, 1), high),
            function.select(is_full, function.add(place, distance), place),
        )
