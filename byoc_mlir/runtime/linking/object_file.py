"""Relocatable object files of x86-64: ELF, as LLVM writes it.

https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html
"""

from __future__ import annotations

import platform
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from byoc_mlir.errors import ExecutionError
from byoc_mlir.locks import cached_property

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_IDENTITY = b"\x7fELF\x02\x01"
"""Identity of ELF, 64 bits, little endian."""
_RELOCATABLE, _X86_64 = 1, 62

_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = np.dtype([("offset", "u8"), ("type", "u4"), ("symbol", "u4"), ("addend", "i8")])

_FRAMES = b".eh_frame"
"""Section with unwind tables, which no code here needs: no exceptions pass it."""


class SectionType(IntEnum):
    """Values of `sh_type`."""

    NULL = 0
    PROGBITS = 1
    SYMTAB = 2
    RELA = 4
    NOTE = 7
    NOBITS = 8
    X86_64_UNWIND = 0x70000001


_LEFT_OUT = (SectionType.NOTE, SectionType.X86_64_UNWIND)
"""Types of sections that code does not need at run time."""


class SectionFlag(IntEnum):
    """Values of `sh_flags`."""

    WRITE = 1
    ALLOC = 2
    EXECINSTR = 4
    TLS = 0x400


class Place(IntEnum):
    """Values of `st_shndx` for symbols in no section."""

    UNDEFINED = 0
    ABSOLUTE = 0xFFF1
    COMMON = 0xFFF2


_LOCAL, _GLOBAL = 0, 1
"""Supported symbol bindings; names of other bindings may be defined twice, or not at all."""
_PLAIN_SYMBOLS = 4
"""Maximum supported symbol type: data, functions, sections, files; others need a runtime."""


class UnknownObjectError(Exception):
    """Raised for an object file of another machine, or with a feature that only LLVM can link.

    A damaged file is an `ExecutionError`.
    """


@dataclass(frozen=True)
class Section:
    """Section that is loaded at run time."""

    number: int
    content: memoryview
    size: int
    """Size in memory; bytes without content are zeros."""
    alignment: int
    is_writable: bool
    is_executable: bool
    relocations: np.ndarray[Any, Any]
    """Relocations with the fields `offset` in the section, `type`, `symbol` by number, `addend`."""

    @property
    def is_constant(self) -> bool:
        """True if the section is read-only data."""
        return not self.is_writable and not self.is_executable


@dataclass(frozen=True)
class LinkerSymbol:
    """Symbol with its definition, or an undefined one."""

    name: str
    section: int
    """Number of the section, or a `Place`."""
    value: int
    """Offset in the section, or the address."""
    is_local: bool


@dataclass(frozen=True)
class ObjectFile:
    """Object file, with the parts that are relevant at run time."""

    sections: Sequence[Section]
    symbols: Sequence[LinkerSymbol]

    @cached_property
    def defined(self) -> Mapping[str, LinkerSymbol]:
        """Returns the symbols that other files may refer to, by name."""
        return {
            one.name: one
            for one in self.symbols
            if not one.is_local and one.section not in (Place.UNDEFINED, Place.ABSOLUTE)
        }

    @staticmethod
    def read(data: bytes) -> ObjectFile:
        """Reads an object file.

        Raises:
            UnknownObjectError: the file is for another machine, or has an unsupported feature.
            ExecutionError: the file is damaged; LLVM would end the process.
        """
        try:
            return _Reader(data).object_file()
        except (struct.error, ValueError, IndexError) as error:
            raise ExecutionError(f"no whole object file: {error}") from error


class _SectionHeader(NamedTuple):
    """Section header, `Elf64_Shdr`."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def is_loaded(self) -> bool:
        """True if code needs the section at run time."""
        return bool(self.flags & SectionFlag.ALLOC) and self.type not in _LEFT_OUT


class _Reader:
    def __init__(self, data: bytes):
        self._data = memoryview(data)
        identity, kind, machine, _, _, _, start, *_, count, names = _HEADER.unpack_from(data)
        if not identity.startswith(_IDENTITY) or (kind, machine) != (_RELOCATABLE, _X86_64):
            refusal = ExecutionError if platform.machine() == "x86_64" else UnknownObjectError
            raise refusal("no object file of x86-64")
        headers = self._part(start, count * _SECTION.size)
        self._headers = [_SectionHeader(*fields) for fields in _SECTION.iter_unpack(headers)]
        self._section_names = bytes(self._content(self._headers[names]))

    def object_file(self) -> ObjectFile:
        relocations = {
            header.info: np.frombuffer(self._content(header), _RELOCATION)
            for header in self._headers
            if header.type == SectionType.RELA
        }
        none = np.empty(0, _RELOCATION)
        sections = [
            self._section(number, header, relocations.get(number, none))
            for number, header in enumerate(self._headers)
            if header.is_loaded and self._name(header) != _FRAMES
        ]
        tables = [header for header in self._headers if header.type == SectionType.SYMTAB]
        symbols = [one for table in tables for one in self._symbols(table)]
        if any((one.relocations["symbol"] >= len(symbols)).any() for one in sections):
            raise ExecutionError("a relocation by a symbol that is not there")
        return ObjectFile(sections, symbols)

    def _name(self, header: _SectionHeader) -> bytes:
        return _text(self._section_names, header.name)

    def _content(self, header: _SectionHeader) -> memoryview:
        return self._part(header.offset, header.size)

    def _part(self, start: int, size: int) -> memoryview:
        if start + size > len(self._data):
            raise ExecutionError("a section, or their table, ends behind the file")
        return self._data[start : start + size]

    def _section(
        self, number: int, header: _SectionHeader, relocations: np.ndarray[Any, Any]
    ) -> Section:
        kind, flags = header.type, header.flags
        if kind == SectionType.NULL or header.alignment & (header.alignment - 1):
            raise ExecutionError(f"a section of type {kind}, aligned to {header.alignment} bytes")
        if kind not in (SectionType.PROGBITS, SectionType.NOBITS) or flags & SectionFlag.TLS:
            raise UnknownObjectError(f"a section of type {kind} with flags {flags}")
        return Section(
            number,
            self._content(header) if kind == SectionType.PROGBITS else memoryview(b""),
            header.size,
            max(1, header.alignment),
            bool(flags & SectionFlag.WRITE),
            bool(flags & SectionFlag.EXECINSTR),
            relocations,
        )

    def _symbols(self, table: _SectionHeader) -> list[LinkerSymbol]:
        names = bytes(self._content(self._headers[table.link]))
        return [
            self._symbol(names, name, info, section, value)
            for name, info, _, section, value, _ in _SYMBOL.iter_unpack(self._content(table))
        ]

    def _symbol(self, names: bytes, name: int, info: int, section: int, value: int) -> LinkerSymbol:
        binding, kind = info >> 4, info & 0xF
        is_listed = section < len(self._headers) or section in (Place.ABSOLUTE, Place.COMMON)
        if not is_listed:
            raise ExecutionError(f"a symbol in section {section}, which is not there")
        is_placed = section != Place.COMMON
        if binding not in (_LOCAL, _GLOBAL) or kind > _PLAIN_SYMBOLS or not is_placed:
            raise UnknownObjectError(
                f"a symbol of type {kind}, binding {binding}, section {section}"
            )
        if name and binding == _LOCAL and section == Place.UNDEFINED:
            raise ExecutionError("a local symbol that nothing defines")
        if value >> 62:
            raise ExecutionError(f"a symbol at {value}")
        return LinkerSymbol(_text(names, name).decode(), section, value, binding == _LOCAL)


def _text(names: bytes, start: int) -> bytes:
    """Returns a string of a string table, where each string ends with a zero."""
    return names[start : names.index(b"\0", start)]
