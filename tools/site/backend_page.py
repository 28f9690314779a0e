"""The reference of the backends that are installed: options and patterns."""

from __future__ import annotations

import inspect

from page import Page, table

from byoc_mlir.backends import Backend, backend_names, get_backend
from byoc_mlir.backends.options import written

_INTRODUCTION = """\
Backends are named in `targets=` and `--targets`, with options in braces where wanted:
`targets=("dnnl{winograd=off}",)`. A backend that is used by default runs without being named.
[Your first backend](../first-backend.md) shows how to add one.
"""


def backend_page() -> Page:
    """Returns the page of all backends."""
    sections = [_section(get_backend(name)) for name in backend_names()]
    text = "\n".join([f"# Backends\n\n{_INTRODUCTION}", *sections])
    return Page("Backends", "reference/backends.md", text)


def _section(backend: Backend) -> str:
    parts = [f"## {backend.name}\n", f"{inspect.cleandoc(type(backend).__doc__ or '')}\n"]
    if backend.used_by_default:
        parts.append("Used by default.\n")
    if backend.options:
        rows = [
            (f"`{name}`", f"`{written(option.default)}`", option.accepted, option.description)
            for name, option in backend.options.items()
        ]
        parts.append(table(("option", "default", "accepted", "what it does"), rows))
    patterns = sorted(dict.fromkeys(pattern.name for pattern in backend.patterns()))
    if patterns:
        parts.append(f"Patterns: {', '.join(f'`{name}`' for name in patterns)}.\n")
    rules = sorted(backend.op_rules())
    if rules:
        parts.append(f"Rules for single ops: {', '.join(f'`{name}`' for name in rules)}.\n")
    return "\n".join(parts)
