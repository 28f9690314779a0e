"""Generated pages of the site, which cover everything."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from byoc_mlir.tools.passes import all_passes

_FOLDER = Path(__file__).parents[3] / "tools" / "site"


def _module(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(_FOLDER))
        return import_module(name)


def test_every_op_has_words_and_an_example() -> None:
    ops = _module("ops")
    made = ops.op_pages()
    assert len({page.path for page in made}) == len(made)
    pages = "\n".join(page.text for page in made)
    for op in ops.op_names():
        assert op.__doc__, op.name
        assert f"## {op.name} " in pages
        assert op.name in ops.example_of(op)


def test_every_pass_has_words() -> None:
    pages = "\n".join(page.text for page in _module("pass_pages").pass_pages())
    for name, factory in all_passes().items():
        assert factory().__doc__, name
        assert f"## {name}\n" in pages


def test_every_public_name_has_words() -> None:
    python = _module("python_page")
    for module in python.MODULES:
        names = python.public_names(module)
        assert names
        found = {name: getattr(import_module(module), name) for name in names}
        bare = [
            name
            for name, one in found.items()
            if isinstance(one, type | FunctionType) and not one.__doc__
        ]
        assert not bare, module


def test_commands_and_backends() -> None:
    commands = _module("command_page").command_page().text
    assert "## byoc explain\n" in commands
    assert "see Passes" in commands
    assert "`winograd`" in _module("backend_page").backend_page().text
