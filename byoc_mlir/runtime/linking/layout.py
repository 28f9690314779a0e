"""Layout of the sections of object files in one range of memory."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence

from byoc_mlir.runtime.linking.object_file import (
    LinkerSymbol,
    ObjectFile,
    Section,
    UnknownObjectError,
)

POINTER_BYTES = 8
_JUMP_STEP = 8
"""Distance between two jumps, which take six bytes each."""


class Layout:
    """Offsets of all linked sections: executable ones, then read-only ones, then the rest.

    Args:
        objects: the object files.
        called: names that no file defines; each gets a jump and a table entry.
        listed: names that get an entry in the table of addresses.

    Raises:
        UnknownObjectError: a name is defined twice, or a section is aligned to more than a page.
    """

    def __init__(self, objects: Sequence[ObjectFile], called: Sequence[str], listed: Sequence[str]):
        self.objects = objects
        self.size = 0
        self.segments: list[tuple[int, int, int]] = []
        """Segments of whole pages: offset, size and protection."""
        self.offsets: list[dict[int, int]] = [{} for _ in objects]
        """Offsets of the sections of each file, by section number."""
        sections = [(part, one) for part, file in enumerate(objects) for one in file.sections]
        self._place(item for item in sections if item[1].is_executable)
        self.jumps = self._places(called, _JUMP_STEP)
        """Offsets of jumps to names that are defined elsewhere, which may be far away."""
        self._end_segment(mmap.PROT_READ | mmap.PROT_EXEC)
        self._place(item for item in sections if item[1].is_constant)
        self.table = self._places(dict.fromkeys((*listed, *called)), POINTER_BYTES)
        self._end_segment(mmap.PROT_READ)
        self._place(item for item in sections if item[1].is_writable)
        self._end_segment(mmap.PROT_READ | mmap.PROT_WRITE)
        self.defined = self._defined()
        """Offsets of global names that a file defines."""

    def offset(self, part: int, symbol: LinkerSymbol) -> int:
        """Returns the offset of a symbol in a section of a file.

        Raises:
            UnknownObjectError: the section is not loaded at run time.
        """
        if symbol.section not in self.offsets[part]:
            raise UnknownObjectError(f"'{symbol.name}' is in a section that is not loaded")
        return self.offsets[part][symbol.section] + symbol.value

    def _place(self, sections: Iterable[tuple[int, Section]]) -> None:
        for part, section in sections:
            if section.alignment > mmap.PAGESIZE:
                raise UnknownObjectError(f"a section is aligned to {section.alignment} bytes")
            self._align(section.alignment)
            self.offsets[part][section.number] = self.size
            self.size += section.size

    def _places(self, names: Iterable[str], step: int) -> Mapping[str, int]:
        self._align(step)
        places: dict[str, int] = {}
        for name in names:
            places[name] = self.size
            self.size += step
        return places

    def _align(self, size: int) -> None:
        self.size += -self.size % size

    def _end_segment(self, protection: int) -> None:
        start = self.segments[-1][0] + self.segments[-1][1] if self.segments else 0
        self._align(mmap.PAGESIZE)
        if self.size > start:
            self.segments.append((start, self.size - start, protection))

    def _defined(self) -> Mapping[str, int]:
        found: dict[str, int] = {}
        for part, one in enumerate(self.objects):
            for name, symbol in one.defined.items():
                if name in found:
                    raise UnknownObjectError(f"'{name}' is defined twice")
                found[name] = self.offset(part, symbol)
        return found
