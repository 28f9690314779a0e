"""IR and code of single nodes and regions, found in a folder that `compile(dump_ir=…)` wrote."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from byoc_mlir.ir_dump import SUMMARY

Excerpt: TypeAlias = tuple[str, str]
"""A title, and some lines of IR."""

_LOCATED = re.compile(
    r' loc\((?:fused\[)?(?P<names>"(?:[^"\\]|\\.)*"(?:, "(?:[^"\\]|\\.)*")*)\]?\)$'
)
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb'\\([nt"\\]|[0-9A-Fa-f]{2})')
_BYTES = {b"n": b"\n", b"t": b"\t", b'"': b'"', b"\\": b"\\"}
_VALUE = re.compile(r"%[\w$.-]+")
_WRAPPING = re.compile(r" *(?:\}|%[\w$.-]+(?:, %[\w$.-]+)* = (?:func\.call|relay\.constant) )")
"""Lines of ops that hold others, call them, or are constants."""
_CALL = re.compile(r'\bllvm\.call @"?([\w$.-]+)"?\(')
_DEFINED = re.compile(r'^define .*?@"?([\w$.-]+)"?\(', re.MULTILINE)
_REGION = re.compile(r'^( *)func\.func private @"?([\w$.-]+)"?\(.*\{$')

_RUN_LAST = re.compile(r"^(\d+) .* convert-relay-to-linalg\b", re.MULTILINE)
"""The line of the pass behind which a node is many ops, with its number."""
_IMPORT = "000-import.mlir"
MOST_LINES = 400
"""Of one text; what is longer is cut."""


@dataclass(frozen=True)
class Details:
    """IR and code, by what a user selects."""

    nodes: Mapping[str, Sequence[Excerpt]] = field(default_factory=dict[str, Sequence[Excerpt]])
    """What stands for an ONNX node when it is imported, and after each pass that changed it."""
    regions: Mapping[str, Sequence[Excerpt]] = field(default_factory=dict[str, Sequence[Excerpt]])
    """A region's function, when it is made and as its backend compiles it."""
    functions: Mapping[str, str] = field(default_factory=dict[str, str])
    """LLVM IR by function; what a backend generated for a region, by the region."""
    calls: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """The functions that compute a node."""

    def document(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "nodes": dict(self.nodes),
            "regions": dict(self.regions),
            "functions": dict(self.functions),
            "calls": dict(self.calls),
        }

    def cut(self, most_lines: int) -> Details:
        """The same with texts of so many lines at most."""
        return Details(
            {name: _all_cut(texts, most_lines) for name, texts in self.nodes.items()},
            {name: _all_cut(texts, most_lines) for name, texts in self.regions.items()},
            {name: _cut(text, most_lines) for name, text in self.functions.items()},
            self.calls,
        )


def read_details(folder: Path) -> Details:
    """What the files of a folder say of nodes and regions.

    Where a model was compiled in parts or for several sets of shapes, all of them are read; of what
    is in several, the one that was written last counts.
    """
    nodes: dict[str, Sequence[Excerpt]] = {}
    regions: dict[str, Sequence[Excerpt]] = {}
    functions: dict[str, str] = {}
    calls: dict[str, Sequence[str]] = {}
    imports = sorted(folder.rglob(_IMPORT), key=lambda path: path.stat().st_mtime_ns)
    for root in (path.parent for path in imports):
        files = sorted(root.glob("[0-9]*.mlir"))
        nodes |= _nodes(_until_last(root, files))
        regions |= _regions(files)
        functions |= _functions(root)
        calls |= _calls(files[-1].read_text()) if files else {}
    return Details(nodes, regions, functions, calls)


def fitted(details: Details, packed: Callable[[Details], bytes], most_bytes: int) -> bytes:
    """The details, packed into so many bytes at most: the longest texts are cut first."""
    lines = MOST_LINES
    found = packed(details.cut(lines))
    while len(found) > most_bytes and lines > 1:
        lines //= 2
        found = packed(details.cut(lines))
    return found


def _until_last(root: Path, files: Sequence[Path]) -> Sequence[Path]:
    """The files of the passes before the last one that is told of, whether that changed something
    or not."""
    run = _RUN_LAST.search((root / SUMMARY).read_text())
    return files if run is None else [file for file in files if file.name < run[1]]


def _title(file: Path) -> str:
    """`017-merge-composite.mlir` is `after merge-composite`."""
    name = file.stem.partition("-")[2]
    return "as imported" if name == "import" else f"after {name}"


def _nodes(files: Iterable[Path]) -> dict[str, Sequence[Excerpt]]:
    found: dict[str, list[Excerpt]] = {}
    last: dict[str, str] = {}
    for file in files:
        lines: dict[str, list[str]] = {}
        for line in file.read_text().splitlines():
            located = _LOCATED.search(line)
            if located is None or _WRAPPING.match(line):
                continue
            for name in _names(located["names"]):
                lines.setdefault(name, []).append(line[: located.start()].strip())
        for name, texts in lines.items():
            text = "\n".join(texts)
            shape = _VALUE.sub("%", text)  # values are numbered anew in each file
            if last.get(name) != shape:
                found.setdefault(name, []).append((_title(file), text))
                last[name] = shape
    return dict(found)


def _names(text: str) -> list[str]:
    """The names in a location."""
    return [_unescaped(name) for name in _NAME.findall(text)]


def _unescaped(text: str) -> str:
    """A text as MLIR writes it: behind a backslash is a letter or a byte in hexadecimal."""
    found = _ESCAPE.sub(
        lambda one: _BYTES.get(one[1]) or bytes.fromhex(one[1].decode()), text.encode()
    )
    return found.decode(errors="replace")


def _regions(files: Sequence[Path]) -> dict[str, Sequence[Excerpt]]:
    """The first text of each function that is a region, and the last one."""
    texts: dict[str, dict[str, str]] = {}
    for file in files:
        for name, text in _functions_of_mlir(file.read_text()):
            if "byoc.compiler" in text.partition("\n")[0]:
                texts.setdefault(name, {})[_title(file)] = text
    return {name: _ends(list(found.items())) for name, found in texts.items()}


def _ends(found: list[Excerpt]) -> Sequence[Excerpt]:
    return found if len(found) == 1 or found[0][1] == found[-1][1] else [found[0], found[-1]]


def _functions_of_mlir(text: str) -> Iterator[tuple[str, str]]:
    lines = text.splitlines()
    for at, line in enumerate(lines):
        head = _REGION.match(line)
        if head is None:
            continue
        end = f"{head[1]}}}"
        last = next(
            (to for to in range(at + 1, len(lines)) if lines[to].startswith(end)), len(lines) - 1
        )
        yield head[2], "\n".join(one[len(head[1]) :] for one in lines[at : last + 1])


def _functions(root: Path) -> dict[str, str]:
    """LLVM's IR by function, optimised where the function is still there; and what is generated."""
    found: dict[str, str] = {}
    for name in ("model.ll", "kernels.ll", "model-optimised.ll", "kernels-optimised.ll"):
        path = root / name
        found |= dict(_functions_of_llvm(path.read_text())) if path.exists() else {}
    for path in root.glob("*.generated"):
        found[path.stem] = path.read_text()
    return found


def _functions_of_llvm(text: str) -> Iterator[tuple[str, str]]:
    for head in _DEFINED.finditer(text):
        end = text.find("\n}", head.start())
        yield head[1], text[head.start() : end + 2]


def _calls(text: str) -> dict[str, Sequence[str]]:
    found: dict[str, dict[str, None]] = {}
    for line in text.splitlines():
        call, located = _CALL.search(line), _LOCATED.search(line)
        if call is None or located is None:
            continue
        for name in _names(located["names"]):
            found.setdefault(name, {})[call[1]] = None
    return {name: list(functions) for name, functions in found.items()}


def _all_cut(texts: Iterable[Excerpt], most_lines: int) -> Sequence[Excerpt]:
    return [(title, _cut(text, most_lines)) for title, text in texts]


def _cut(text: str, most_lines: int) -> str:
    lines = text.splitlines()
    if len(lines) <= most_lines:
        return text
    left = len(lines) - most_lines
    return "\n".join([*lines[:most_lines], f"… and {left} more lines: see compile(dump_ir=…)"])
