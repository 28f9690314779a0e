"""Messages of the package in the words of the command line."""

from __future__ import annotations

import re

_IN_PYTHON = (
    (r"pass limits=byoc_mlir\.Limits\((\w+)=\.\.\.\) to compile", r"give --limit \1=NUMBER"),
    (r'fallback="(\w+)"', r"--fallback \1"),
    (r"targets=\(\)", "--targets ''"),
    (r"call run or warmup( first)?", "give the shapes of its inputs, --shape NAME=1,2,3"),
)
"""Advice in messages for callers in Python, as patterns, with the advice for users of the commands.
"""


def on_command_line(text: str) -> str:
    """Returns a message with its advice put for the command line instead of Python."""
    for python, command in _IN_PYTHON:
        text = re.sub(python, command, text)
    return text
