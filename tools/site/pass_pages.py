"""The reference of passes: the compiler's, and those that backends run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import get_type_hints

from page import Page, table
from xdsl.passes import ModulePass

from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.compiler.disable import OPTIONAL_PASSES, REQUIRED_PASSES
from byoc_mlir.tools.passes import all_passes

FOLDER = "reference/passes"

_INTRODUCTION = """\
What `byoc-opt -p` runs, and `byoc compile --dump-dir` numbers. Options stand in braces behind the
name, with `-` for `_`; lists are separated by commas:

```sh
byoc-opt model.onnx -p 'fold-constants,partition-for{targets=dnnl}'
```

*Can be disabled* means that `disable=` and `--disable` accept the name. To add a pass of your own,
see [Write a pass](../../passes.md).
"""

_CHAPTERS = {
    "transforms": ("Relay passes", "From `relay` to `relay`: canonicalisation and partitioning."),
    "compiler": ("Compiler passes", "Where the regions of a partitioned module run."),
    "lowering": ("Host passes", "The host compiler, from `relay` to the `llvm` dialect."),
}


def pass_pages() -> list[Page]:
    """Returns an index, a page for each folder of passes, and one for the passes of backends."""
    pages = [
        _page(
            title, text, {name: kind for name, kind in _ours() if f".{folder}" in kind.__module__}
        )
        for folder, (title, text) in _CHAPTERS.items()
    ]
    pages.append(_page("Passes of backends", "What backends run on their regions.", _of_backends()))
    links = "\n".join(f"- [{page.title}]({page.path.rpartition('/')[2]})" for page in pages)
    return [
        Page("About passes", f"{FOLDER}/index.md", f"# Passes\n\n{_INTRODUCTION}\n{links}\n"),
        *pages,
    ]


def _ours() -> Iterator[tuple[str, type[ModulePass]]]:
    yield from ((name, factory()) for name, factory in sorted(all_passes().items()))


def _of_backends() -> Mapping[str, type[ModulePass]]:
    backends = map(get_backend, backend_names())
    return {name: make() for backend in backends for name, make in sorted(backend.passes().items())}


def _page(title: str, text: str, passes: Mapping[str, type[ModulePass]]) -> Page:
    sections = [_section(name, kind) for name, kind in passes.items()]
    path = f"{FOLDER}/{title.lower().replace(' ', '-')}.md"
    return Page(title, path, "\n".join([f"# {title}\n\n{text}\n", *sections]))


def _section(name: str, kind: type[ModulePass]) -> str:
    parts = [f"## {name}\n", f"{_described(kind)}\n"]
    types = get_type_hints(kind)
    rows = [
        (f"`{one.name.replace('_', '-')}`", _type(types[one.name]), _default(one.default))
        for one in fields(kind)
        if one.init
    ]
    if rows:
        parts.append(table(("option", "type", "default"), rows))
    if name in OPTIONAL_PASSES:
        parts.append("Can be disabled.\n")
    elif name in REQUIRED_PASSES:
        parts.append(f"Cannot be disabled: {REQUIRED_PASSES[name]}.\n")
    return "\n".join(parts)


def _described(kind: type[ModulePass]) -> str:
    """Returns the docstring of a pass, with its options as a list."""
    text = inspect.cleandoc(kind.__doc__ or "")
    return re.sub(
        r"^    (\w+): ", r"- `\1`: ", text.replace("Options:\n", "Options:\n\n"), flags=re.M
    )


def _type(hint: object) -> str:
    return inspect.formatannotation(hint).replace("typing.", "")


def _default(value: object) -> str:
    if value is MISSING:
        return "must be given"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return f"`{','.join(map(str, value))}`" if value else "none"
    return "none" if value is None else f"`{value}`"
