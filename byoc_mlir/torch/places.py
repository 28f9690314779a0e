"""Locations in the user's code."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from byoc_mlir.errors import NodeProblem
from byoc_mlir.torch.tensors import pytorch

_FRAME = re.compile(r'File "(?P<file>.+?)", line (?P<line>\d+)')
_PACKAGE = Path(__file__).parent.parent


def place_of_node(node: Any) -> str:
    """Returns the location of a graph's node in the user's code, `model.py:12`; the node's name if
    it is unknown.
    """
    found = _FRAME.findall(node.meta.get("stack_trace") or "")
    return _last_of_user(found) or node.name


def node_problem(node: Any, reason: str) -> NodeProblem:
    """Returns the reason why a graph's node is refused, with its location."""
    return NodeProblem(place_of_node(node), str(node.target), "", reason)


def place_of_error(error: BaseException) -> str:
    """Returns the innermost line of the user's code that raised an error; empty if there is
    none."""
    return _last_of_user(
        (frame.filename, str(frame.lineno))
        for cause in causes_of(error)
        for frame in traceback.extract_tb(cause.__traceback__)
    ) or _last_of_user(_FRAME.findall(str(error)))


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an error, then its cause, and so on."""
    while error is not None:
        yield error
        error = error.__cause__


def _last_of_user(frames: Any) -> str:
    ours = (Path(pytorch().__file__).parent, _PACKAGE)
    places = [
        f"{Path(file).name}:{line}"
        for file, line in frames
        if not file.startswith("<") and not any(Path(file).is_relative_to(one) for one in ours)
    ]
    return places[-1] if places else ""
