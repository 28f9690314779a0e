"""Edited code of a backend is compiled again, wherever its files are; unknown code is not
cached."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import onnx
import pytest
from artifact_files import elementwise_model

from byoc_mlir.testing.forked import run_forked

BACKEND = """
from byoc_mlir.backends import Backend, CSource
{imports}

class Edited(Backend):
    name = "edited"

    def op_rules(self):
        return {{"nn.relu": lambda op: None}}

    def codegen(self, region, context):
        name = region.sym_name.data
        loop = f"for (int i = 0; i < 24; i++) y[i] = {{float({value})}}f; return 0;"
        return CSource(f"int {{name}}(const float *x, float *y) {{{{ {{loop}} }}}}")
"""
"""Source of a backend whose Relu returns the same number for any input."""

REGISTERED = "from byoc_mlir.backends import register_backend\nregister_backend(Edited)\n"

START = """
import json, os, sys
folder, path, *sys.argv[1:] = sys.argv[1:]
os.chdir(folder)
sys.dont_write_bytecode = True
sys.path[:0] = path.split(os.pathsep)
if os.path.exists("site/sitecustomize.py"):
    exec(open("site/sitecustomize.py").read())
"""
"""Prelude of a script: as `python -B` starts in a folder with this `PYTHONPATH`."""

COMPILE = """
import numpy as np
import byoc_mlir
executable = byoc_mlir.compile(sys.argv[1], ("edited",), fallback="allow", cache=sys.argv[2])
found = executable.run({name: np.ones((4, 6), np.float32) for name in ("x", "y")})["out"]
seconds = [name for name, _ in executable.report().compile_seconds]
print(json.dumps([float(found[0, 0]), seconds == ["cache"]]))
"""

FINGERPRINT = """
from byoc_mlir.compiler.cache.fingerprint import digest, machine_and_software
for file in sys.argv[1:]:
    from byoc_mlir.backends.registry import load_backend_module
    load_backend_module(file)
known = machine_and_software()
print(json.dumps(None if known is None else digest(known)))
"""


class Workshop:
    """Folder with a model, a cache and the sources of a backend."""

    def __init__(self, folder: Path):
        self.folder, self.model, self.cache = folder, folder / "m.onnx", folder / "cache"
        self.site = folder / "site"
        self.site.mkdir()
        onnx.save(elementwise_model(), self.model)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def install(self, module: str) -> None:
        """Registers a module's backend as `pip` does; the sources stay where the caller puts
        them."""
        about = "site/edited-1.0.dist-info"
        self.write(f"{about}/METADATA", "Metadata-Version: 2.1\nName: edited\nVersion: 1.0\n")
        points = f"[byoc_mlir.backends]\nedited = {module}:Edited\n"
        self.write(f"{about}/entry_points.txt", points)

    def fingerprint(self, *files: Path, path: tuple[Path, ...] = ()) -> str | None:
        """Returns the fingerprint of the software in a new process that registers these files."""
        return self._run(FINGERPRINT, *files, path=path)

    def compile(self) -> tuple[float, bool]:
        """Returns the number that a new process computes, and `True` if its program came from the
        cache.
        """
        number, cached = self._run(COMPILE, self.model, self.cache)
        return number, cached

    def _run(self, code: str, *arguments: Path, path: tuple[Path, ...] = ()) -> Any:
        entries = os.pathsep.join(map(str, (self.site, *path)))
        return json.loads(run_forked(START + code, str(self.folder), entries, *map(str, arguments)))


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def backend(value: object, imports: str = "") -> str:
    return BACKEND.format(value=value, imports=imports)


def check(workshop: Workshop, edited: str, text: str, *files: Path) -> None:
    """Checks that the fingerprint changes when a file is edited, and only then."""
    before = workshop.fingerprint(*files)
    assert before is not None
    assert workshop.fingerprint(*files) == before
    workshop.write(edited, text)
    assert workshop.fingerprint(*files) != before


def test_a_single_module(workshop: Workshop) -> None:
    workshop.install("single")
    workshop.write("site/single.py", backend(1))
    assert [workshop.compile() for _ in range(2)] == [(1.0, False), (1.0, True)]
    workshop.write("site/single.py", backend(20))
    assert workshop.compile() == (20.0, False)


def test_a_package_that_pip_installed_as_editable(workshop: Workshop) -> None:
    """Checks an editable installation: the finder in its `.pth` file leads to a folder outside of
    the path.
    """
    workshop.install("package.deep")
    workshop.write("sources/package/__init__.py", "")
    workshop.write("sources/package/deep.py", backend("VALUE", "from package.values import VALUE"))
    workshop.write("sources/package/values.py", "VALUE = 1")
    finder = f"""
import sys
from importlib.machinery import PathFinder
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [{str(workshop.folder / "sources")!r}])
sys.meta_path.append(Finder)
"""
    workshop.write("site/sitecustomize.py", finder)
    check(workshop, "sources/package/values.py", "VALUE = 20")


def test_a_package_in_a_namespace(workshop: Workshop) -> None:
    workshop.install("vendor.card")
    workshop.write("site/vendor/card/__init__.py", backend("VALUE", "from .values import VALUE"))
    workshop.write("site/vendor/card/values.py", "VALUE = 1")
    check(workshop, "site/vendor/card/values.py", "VALUE = 20")


def test_bytecode_that_is_being_written_does_not_matter(workshop: Workshop) -> None:
    workshop.install("package")
    workshop.write("site/package/__init__.py", backend(1))
    before = workshop.fingerprint()
    assert before is not None
    workshop.write("site/package/__pycache__/__init__.cpython-311.pyc.140234", "half of it")
    assert workshop.fingerprint() == before


def test_a_file_with_another_beside_it(workshop: Workshop) -> None:
    imports = "import sys; sys.path.insert(0, 'mine')\nfrom values import VALUE"
    file = workshop.write("mine/card.py", backend("VALUE", imports) + REGISTERED)
    workshop.write("mine/values.py", "VALUE = 1")
    check(workshop, "mine/values.py", "VALUE = 20", file)


def test_a_file_whose_class_inherits_its_functions(workshop: Workshop) -> None:
    text = "from byoc_mlir.backends.reference import ReferenceBackend as Base\n"
    text += "class Mine(Base):\n    name = 'edited'\n    limit = {}\n"
    text += "    def describe(self):\n        return 'mine'\n"
    text += "Edited = Mine\n" + REGISTERED
    file = workshop.write("mine/card.py", text.format(1))
    check(workshop, "mine/card.py", text.format(20), file)


def test_an_archive_is_not_cached(workshop: Workshop) -> None:
    workshop.install("packed")
    archive = workshop.folder / "packed.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("packed/__init__.py", backend(1))
    assert workshop.fingerprint(path=(archive,)) is None


def test_a_file_in_place_of_an_installed_backend(workshop: Workshop) -> None:
    workshop.install("gone")
    file = workshop.write("mine/card.py", backend(1) + REGISTERED)
    check(workshop, "mine/card.py", backend(20) + REGISTERED, file)
