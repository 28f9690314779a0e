"""Fourier transforms."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects.relay.base import DataOp, bool_prop, tensor_of, tensor_type, type_sizes

RADICES = (8, 6, 4, 2, 3, 5, 7, 11, 13)
"""Factors into which a length is split, in the order in which they are tried."""


def factors_of(length: int, radices: Sequence[int] = RADICES) -> list[int]:
    """Returns the length as a product of `radices`; empty if it is none, or 1."""
    found: list[int] = []
    if length < 1:
        return found
    for radix in radices:
        while length % radix == 0:
            found.append(radix)
            length //= radix
    return found if length == 1 else []


@irdl_op_definition
class FftOp(DataOp):
    """Fourier transform `[..., n, 2] -> [..., n, 2]` of complex numbers, for n of small factors.

    With `inverse`, it is the inverse transform, divided by n. With `real`, the signal is real and n
    is even: `[..., n, 1] -> [..., n / 2 + 1, 2]` are the frequencies that determine the others, and
    the inverse maps them back.
    """

    name = "relay.fft"
    inverse = bool_prop(False)
    real = bool_prop(False)

    @property
    def is_inverse(self) -> bool:
        """True if the transform is the inverse one."""
        return bool(self.inverse.value.data)

    @property
    def is_real(self) -> bool:
        """True if the signal is real."""
        return bool(self.real.value.data)

    @property
    def complex_length(self) -> int:
        """Returns the length of the complex transform; of a real signal, it is half as long."""
        count = operator.index(type_sizes(tensor_type(self.data))[-2])
        if not self.is_real:
            return count
        return count - 1 if self.is_inverse else count // 2

    def infer_types(self) -> Sequence[Attribute]:
        type_ = tensor_type(self.data)
        if len(type_sizes(type_)) < 2:
            raise VerifyException(f"{self.name}: {type_} has no dimensions for numbers and parts")
        *outer, count, parts = type_sizes(type_)
        wanted = 1 if self.is_real and not self.is_inverse else 2
        if parts != wanted:
            raise VerifyException(f"{self.name}: {type_} has {parts} parts, accepted are {wanted}")
        length = self.complex_length
        if self.is_real and wanted == 1 and operator.index(count) % 2:
            raise VerifyException(f"{self.name}: a real signal has an even length, not {count}")
        if length != 1 and not factors_of(length):
            raise VerifyException(
                f"{self.name}: the length {length} has a prime factor above {max(RADICES)}"
            )
        if not self.is_real:
            return (type_,)
        sizes = [2 * length, 1] if self.is_inverse else [length + 1, 2]
        return (tensor_of(type_.element_type, [*outer, *sizes]),)
