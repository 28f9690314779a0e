"""Links object files of x86-64 in the memory of the process without LLVM.

A process that compiles nothing so avoids loading LLVM, which takes some 60 ms and 40 MB. This
linker supports what LLVM writes into the files of this package; `linking.llvm` links all other
files. https://gitlab.com/x86-psABIs/x86-64-ABI, "Relocation"
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.errors import ExecutionError, OutOfMemoryError
from byoc_mlir.runtime.linking.object_file import (
    LinkerSymbol,
    ObjectFile,
    Place,
    Section,
    UnknownObjectError,
)
from byoc_mlir.runtime.system.libraries import resolve_symbol
from byoc_mlir.runtime.system.memory import protect

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
            ExecutionError: the section is not loaded at run time.
        """
        if symbol.section not in self.offsets[part]:
            raise ExecutionError(f"'{symbol.name}' is in a section that is not loaded")
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


_Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

_JUMP = b"\xff\x25"
"""Opcode of `jmp *distance(%rip)`; a distance of four bytes follows, relative to its end."""
_DISTANCE_BYTES = 4
_MOST_BYTES = (1 << 31) - 1
"""Maximum distance."""
_JUMP_BYTES = len(_JUMP) + _DISTANCE_BYTES


class Relocation(IntEnum):
    """Relocation types `R_X86_64_*`: values that are written where code or data need an address."""

    ABSOLUTE = 1
    """Address."""
    PC32 = 2
    """Distance to the address."""
    PLT32 = 4
    """Distance to the address, or to a jump to it."""
    GOTPCREL = 9
    """Distance to a table entry with the address."""
    GOTPCRELX = 41
    REX_GOTPCRELX = 42


_KNOWN = frozenset(map(int, Relocation))
_BY_TABLE = (Relocation.GOTPCREL, Relocation.GOTPCRELX, Relocation.REX_GOTPCRELX)
"""Relocations that read an address from a table."""


class LinkedImage:
    """Object files in memory, ready to be called.

    Args:
        files: the object files.
        external: addresses of symbols that the files do not define; symbols of the process are
            found without it.

    Raises:
        UnknownObjectError: the files have a feature that is not supported here.
        ExecutionError: a symbol is not defined, or a file is damaged.
        OutOfMemoryError: there is not enough memory for the files.
    """

    def __init__(self, files: Sequence[bytes], external: Mapping[str, int]):
        objects = [ObjectFile.read(data) for data in files]
        called, listed = _called_and_listed(objects)
        layout = Layout(objects, called, listed)
        self._memory = _new_memory(layout.size)
        content = np.frombuffer(self._memory, np.uint8)
        self._start, self._defined = int(content.ctypes.data), layout.defined
        _Writer(layout, content, external).write()
        for offset, size, protection in layout.segments:
            protect(self._start + offset, size, protection)

    def address(self, entry_point: str) -> int:
        """Returns the address of a function or a variable.

        Raises:
            ExecutionError: no file defines the name.
        """
        if entry_point not in self._defined:
            raise ExecutionError(f"nothing defines '{entry_point}'")
        return self._start + self._defined[entry_point]

    def close(self) -> None:
        """Frees the memory. No call may use the code afterwards."""
        self._memory.close()


def _new_memory(size: int) -> mmap.mmap:
    if not 0 < size <= _MOST_BYTES:
        raise UnknownObjectError(f"code and data of {size} bytes")
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise OutOfMemoryError(f"there is no memory for native code of {size} bytes") from error


def _called_and_listed(objects: Sequence[ObjectFile]) -> tuple[list[str], list[str]]:
    """Returns the undefined names to which code jumps, and the names whose address is in the
    address table.
    """
    defined = {name for one in objects for name in one.defined}
    called: dict[str, None] = {}
    listed: dict[str, None] = {}
    for one in objects:
        for section in one.sections:
            pairs = section.relocations[["type", "symbol"]].tolist()
            for kind, number in dict.fromkeys(pairs):
                symbol = one.symbols[number]
                if kind not in _KNOWN:
                    raise UnknownObjectError(f"a relocation of type {kind}")
                if kind in _BY_TABLE and symbol.is_local:
                    raise UnknownObjectError(f"the local '{symbol.name}' is to be in a table")
                if kind in _BY_TABLE:
                    listed[symbol.name] = None
                elif kind == Relocation.PLT32 and not (symbol.is_local or symbol.name in defined):
                    called[symbol.name] = None
    return list(called), list(listed)


class _Writer:
    """Writer of the sections' contents at the offsets of `Layout`."""

    def __init__(self, layout: Layout, content: np.ndarray[Any, Any], external: Mapping[str, int]):
        self._layout, self._content, self._external = layout, content, external
        self._start = int(content.ctypes.data)
        self._of_process: dict[str, int] = {}

    def write(self) -> None:
        for part, one in enumerate(self._layout.objects):
            for section in one.sections:
                self._write_section(part, section)
        for name, place in self._layout.jumps.items():
            distance = self._layout.table[name] - (place + _JUMP_BYTES)
            self._write_bytes(
                place, _JUMP + distance.to_bytes(_DISTANCE_BYTES, "little", signed=True)
            )
        for name, place in self._layout.table.items():
            self._write_bytes(place, self._named(name).to_bytes(POINTER_BYTES, "little"))

    def _write_bytes(self, place: int, data: bytes | memoryview) -> None:
        self._content[place : place + len(data)] = np.frombuffer(data, np.uint8)

    def _write_section(self, part: int, section: Section) -> None:
        first = self._layout.offsets[part][section.number]
        self._write_bytes(first, section.content)
        if (section.relocations["offset"] >= section.size).any():
            raise ExecutionError("a relocation behind the end of its section")
        places = first + section.relocations["offset"].astype(np.int64)
        kinds, numbers = section.relocations["type"], section.relocations["symbol"]
        for kind in dict.fromkeys(kinds.tolist()):
            chosen = kinds == kind
            targets = self._targets(part, kind, numbers[chosen].tolist())
            values = targets + section.relocations["addend"][chosen]
            self._write_values(kind, places[chosen], values, first + section.size)

    def _targets(self, part: int, kind: int, numbers: Sequence[int]) -> _Numbers:
        """Returns the target addresses of relocations of one type, by the numbers of symbols."""
        symbols = self._layout.objects[part].symbols
        targets = {one: self._target(part, kind, symbols[one]) for one in dict.fromkeys(numbers)}
        return np.array([targets[one] for one in numbers], np.int64)

    def _target(self, part: int, kind: int, symbol: LinkerSymbol) -> int:
        if symbol.section == Place.ABSOLUTE:
            return symbol.value
        if symbol.is_local:
            return self._start + self._layout.offset(part, symbol)
        if kind in _BY_TABLE:
            return self._start + self._layout.table[symbol.name]
        if kind == Relocation.PLT32 and symbol.name in self._layout.jumps:
            return self._start + self._layout.jumps[symbol.name]
        return self._named(symbol.name)

    def _write_values(self, kind: int, places: _Numbers, values: _Numbers, end: int) -> None:
        if kind == Relocation.ABSOLUTE:
            size, written = POINTER_BYTES, values
        else:
            size, distances = _DISTANCE_BYTES, values - (self._start + places)
            written = distances.astype(np.int32)
            if (written != distances).any():
                raise UnknownObjectError("a distance that does not fit in 32 bits")
        if (places + size > end).any():
            raise ExecutionError("a relocation behind the end of its section")
        within = places[:, None] + np.arange(size)
        self._content[within] = written.view(np.uint8).reshape(-1, size)

    def _named(self, name: str) -> int:
        """Returns the address of a global name."""
        if name in self._layout.defined:
            return self._start + self._layout.defined[name]
        if name not in self._external and name not in self._of_process:
            self._of_process[name] = resolve_symbol(name, ())
        return self._external[name] if name in self._external else self._of_process[name]
