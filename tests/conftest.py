"""Fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Hashable, Iterable
from importlib.util import find_spec
from itertools import groupby

import pytest
from covering import covering
from hypothesis import settings

# Tests compile what they test, in subprocesses too, and leave no files in the user's folders. How
# fast the machine is they measure for all: workers have the folder of who starts them.
os.environ["BYOC_CACHE"] = "calibration"
if "PYTEST_XDIST_WORKER" not in os.environ:
    _folder = tempfile.TemporaryDirectory(prefix="byoc-calibration-")
    os.environ["BYOC_CACHE_DIR"] = _folder.name
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # else each translates all of the package
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(_folder.name, "bytecode")
os.environ["BYOC_STRICT"] = "on"  # a defect that users are spared is one all the same
os.environ["BYOC_INTERPRETER"] = "off"  # what answers before it is compiled has tests of its own

# Ten thousand tests and all modules are not looked through for garbage again and again.
gc.set_threshold(50_000, 10, 50)

# A slow example says that the machine is busy.
settings.register_profile(
    "shared machine",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
)
settings.load_profile("shared machine")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option for all combinations of parameters; by default, marks select some."""
    parser.addoption(
        "--all-combinations",
        action="store_true",
        help="of the parameters of tests marked `pairs` or `values`",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects runs of a test marked `pairs` so that each value of a parameter meets each value of
    every other, and of a test marked `values` so that each value occurs.
    """
    if config.getoption("--all-combinations"):
        return
    tests = groupby(items, lambda item: item.nodeid.partition("[")[0])
    kept = [item for _, of_test in tests for item in _covering([*of_test])]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[*{*items}.difference(kept)])
        items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints how to install packages that tests import and this Python lacks."""
    if find_spec("ccompiler") is None:
        terminalreporter.write_line(
            "some tests need what is not installed, or not as it is now:"
            " python -m pip install -e . ./examples/backends/* ./fuzzer"
        )


def _covering(items: list[pytest.Item]) -> Iterable[pytest.Item]:
    if items[0].get_closest_marker("pairs") is not None:
        return [items[number] for number in covering([*map(_place, items)], 2)]
    if items[0].get_closest_marker("values") is not None:
        return [items[number] for number in covering([*map(_place, items)], 1)]
    return items


def _place(item: pytest.Item) -> dict[str, Hashable]:
    """Returns the values that each `parametrize` gives a test."""
    assert isinstance(item, pytest.Function)
    given = item.callspec.params
    place: dict[str, Hashable] = {}
    for mark in item.iter_markers("parametrize"):
        names = [mark.args[0]] if isinstance(mark.args[0], str) else mark.args[0]
        place[" ".join(names)] = tuple(id(given[name]) for name in names)
    return place
