"""Hostile object files, stores of weights and entries of the compile cache."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

from byoc_mlir_fuzz.mutate import mutated_bytes

_Field: TypeAlias = tuple[int, int]
"""Offset of a field in its row, and its bytes."""

_HEADER: Sequence[_Field] = ((16, 2), (18, 2), (40, 8), (52, 2), (58, 2), (60, 2), (62, 2))
_SECTION: Sequence[_Field] = (
    *((0, 4), (4, 4), (8, 8), (16, 8), (24, 8), (32, 8), (40, 4), (44, 4), (48, 8), (56, 8)),
)
_SYMBOL: Sequence[_Field] = ((0, 4), (4, 1), (5, 1), (6, 2), (8, 8), (16, 8))
_RELOCATION: Sequence[_Field] = ((0, 8), (8, 4), (12, 4), (16, 8))
_TABLES: Mapping[int, tuple[int, Sequence[_Field]]] = {2: (24, _SYMBOL), 4: (24, _RELOCATION)}
"""Bytes of a row and its fields, by the type of the section that has the table."""

_POWERS = (0, 1, 2, 3, 4, 7, 8, 12, 15, 16, 30, 31, 32, 47, 61, 62, 63)
_NUMBERS = tuple(sorted({(1 << power) + more for power in _POWERS for more in (-1, 0, 1)}))


def hostile_object(rng: Random, data: bytes) -> bytes:
    """Returns an object file of ELF after changes of numbers in its tables, or of bytes."""
    if rng.random() < 0.1:
        return mutated_bytes(rng, data)
    changed, tables = bytearray(data), list(_tables(data))
    for _ in range(rng.choice([1, 1, 2, 3])):
        start, rows, step, fields = rng.choice(tables)
        offset, size = rng.choice(fields)
        at = start + rng.randrange(rows) * step + offset
        other = start + rng.randrange(rows) * step + offset
        old = int.from_bytes(data[other : other + size], "little")
        new = rng.choice([old, old + 1, old - 1, len(data), *rng.choices(_NUMBERS, k=6)])
        changed[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(changed)


def _tables(data: bytes) -> Iterator[tuple[int, int, int, Sequence[_Field]]]:
    """Yields the tables of an object file: offset, number of rows, bytes of a row, fields."""
    (start,), (count,) = struct.unpack_from("<Q", data, 40), struct.unpack_from("<H", data, 60)
    yield 0, 1, 64, _HEADER
    yield start, count, 64, _SECTION
    for number in range(count):
        kind, *_, offset, size = struct.unpack_from("<IQQQQ", data, start + 64 * number + 4)
        step, fields = _TABLES.get(kind, (0, ()))
        if step and size:
            yield offset, size // step, step, fields


def hostile_store(rng: Random, data: bytes) -> bytes:
    """Returns a file of safetensors after changes of its header, or of bytes."""
    if rng.random() < 0.2:
        return mutated_bytes(rng, data)
    size = int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8 : 8 + size])
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice([one for one in header if one != "__metadata__"] or ["x"])
        with suppress(KeyError, ValueError, TypeError):  # an earlier change is in its way
            rng.choice(_STORE_CHANGES)(rng, header, name)
    text = json.dumps(header).encode()
    if rng.random() < 0.1:
        text = rng.choice([b"[" * 5000, b"null", b'{"a":' * 200, text + b"  ", text * 2])
    length = rng.choice([len(text)] * 9 + [rng.choice(_NUMBERS)])
    return length.to_bytes(9, "little")[:8] + text + data[8 + size :]


_DTYPES = ("F64", "F16", "BF16", "I8", "U64", "BOOL", "F8_E4M3", "", 3)


def _another_dtype(rng: Random, header: dict[str, Any], name: str) -> None:
    header[name]["dtype"] = rng.choice(_DTYPES)


def _another_shape(rng: Random, header: dict[str, Any], name: str) -> None:
    shape = rng.choices([*_NUMBERS, -1, 1.5, "2", None], k=rng.randint(0, 3))
    header[name]["shape"] = rng.choice([shape, header[name]["shape"][::-1]])


def _other_offsets(rng: Random, header: dict[str, Any], name: str) -> None:
    start, end = header[name]["data_offsets"]
    header[name]["data_offsets"] = rng.choice(
        [[start + 1, end], [start, end - 1], [end, start], rng.choices(_NUMBERS, k=2), [start]]
    )


def _another_name(rng: Random, header: dict[str, Any], name: str) -> None:
    header[rng.choice(["", "__metadata__", name + "x", name.upper(), "\x00"])] = header.pop(name)


def _same_bytes_twice(rng: Random, header: dict[str, Any], name: str) -> None:
    other = rng.choice(list(header))
    header[other] = header[name]


_STORE_CHANGES: Sequence[Callable[[Random, dict[str, Any], str], None]] = (
    *(_another_dtype, _another_shape, _other_offsets, _another_name, _same_bytes_twice),
)


def hostile_cache(rng: Random, entries: Mapping[str, bytes], folder: Path) -> None:
    """Writes the entries of a compile cache to a new folder, and damages one to three of them."""
    folder.mkdir(mode=0o700)
    for name, data in entries.items():
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o600)
    for name in rng.sample(sorted(entries), rng.choice([1, 1, 2, 3])):
        rng.choice(_ENTRY_CHANGES)(rng, folder / name, entries)


_FOOTER, _HASH = 64, 32
"""Bytes of an entry's footer, and of the hash that it ends in."""
_FOOTER_FIELDS: Sequence[_Field] = ((0, 8), (8, 8), (16, 8), (24, 8))
"""Magic, format version, offset and length of the document."""

_Entries: TypeAlias = Mapping[str, bytes]


def _damaged(rng: Random, path: Path, entries: _Entries) -> None:
    path.write_bytes(mutated_bytes(rng, entries[path.name]))


def _truncated(rng: Random, path: Path, entries: _Entries) -> None:
    size = len(entries[path.name])
    os.truncate(path, rng.choice([0, _HASH, _FOOTER, size - 1, rng.randrange(size)]))


def _extended(rng: Random, path: Path, entries: _Entries) -> None:
    data = entries[path.name]
    path.write_bytes(data + rng.choice([b"x", bytes(_FOOTER), data[-_FOOTER:], data]))


def _another_entry(rng: Random, path: Path, entries: _Entries) -> None:
    """Puts another entry, of this model or of another one, under the name."""
    path.write_bytes(entries[rng.choice(sorted(entries))])


def _two_swapped(rng: Random, path: Path, entries: _Entries) -> None:
    files = [one for one in map(path.with_name, sorted(entries)) if one.is_file()]
    other = rng.choice(files)
    path.write_bytes(entries[other.name])
    other.write_bytes(entries[path.name])


def _another_footer(rng: Random, path: Path, entries: _Entries) -> None:
    """Changes the version or another number of the footer; the hash fits, as another version's."""
    data = bytearray(entries[path.name])
    offset, size = rng.choice(_FOOTER_FIELDS)
    at = len(data) - _FOOTER + offset
    old = int.from_bytes(data[at : at + size], "little")
    new = rng.choice([old + 1, old - 1, len(data), *rng.choices(_NUMBERS, k=4)])
    data[at : at + size] = (new % (1 << 64)).to_bytes(size, "little")
    path.write_bytes(data[:-_HASH] + hashlib.sha256(data[:-_HASH]).digest())


def _another_digest(rng: Random, path: Path, entries: _Entries) -> None:
    other = entries[rng.choice(sorted(entries))][-_HASH:]
    digest = rng.choice([other[::-1], bytes(_HASH), rng.randbytes(_HASH)])
    path.write_bytes(entries[path.name][:-_HASH] + digest)


def _no_file_of_the_user(rng: Random, path: Path, entries: _Entries) -> None:
    """Replaces the entry by nothing, a folder, a link, a pipe, or a file that others may write."""
    if rng.random() < 0.2:
        return path.chmod(0o666)
    path.unlink()
    kind = rng.randrange(5)
    if kind == 0:
        path.mkdir()
    elif kind == 1:
        path.symlink_to(path.with_name(rng.choice(sorted(entries))))
    elif kind == 2:
        os.mkfifo(path)
    elif kind == 3:
        path.symlink_to(path.with_name("nowhere"))


_ENTRY_CHANGES: Sequence[Callable[[Random, Path, _Entries], None]] = (
    *(_damaged, _truncated, _extended, _another_entry, _two_swapped, _another_footer),
    *(_another_digest, _no_file_of_the_user),
)
