"""Windows that move over the spatial dimensions of an array."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A window along one dimension of `size`: `count` places, each of `kernel` elements.

    Its first place begins `begin` elements before the data; the last ends at most `end` behind.
    """

    size: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    count: int

    @property
    def extent(self) -> int:
        """The elements from the first to the last of a window."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def reach(self) -> int:
        """The elements from the first of the first window to the last of the last one."""
        return (self.count - 1) * self.stride + self.extent

    @property
    def padded_size(self) -> int:
        """The elements of the data with as many around as windows reach."""
        return max(self.reach, self.begin + self.size)

    @property
    def inside(self) -> slice:
        """The place of the data among the padded elements."""
        return slice(self.begin, self.begin + self.size)

    def read_at(self, place: int) -> slice:
        """Returns what all windows read at a place of the kernel, of the padded elements."""
        start = place * self.dilation
        return slice(start, start + (self.count - 1) * self.stride + 1, self.stride)
