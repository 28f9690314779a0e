"""`byoc new-backend`: begin a package with a backend, its entry point and its tests."""

from __future__ import annotations

import argparse
import keyword
from importlib.util import find_spec
from pathlib import Path

from byoc_mlir.backends import backend_names
from byoc_mlir.errors import BackendError
from byoc_mlir.tools.commands.common import add_json_argument, print_json

_TEMPLATES = Path(__file__).parents[1] / "templates"
_BACKEND = {
    "backend.py": "{name}.py",
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "test_backend.py": "tests/test_{name}.py",
}
"""Files of a package with a backend, by template."""
_DEVICE = {
    "__init__.py": "{name}/__init__.py",
    "driver.c": "{name}/driver.c",
    "device.py": "{name}/device.py",
    "backend.py": "{name}/backend.py",
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "test_backend.py": "tests/test_{name}.py",
}
"""Files of a package with a device and a backend on it, by template."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    parser.add_argument("name", help="the backend's name and the package's, in lower case")
    parser.add_argument(
        "--device",
        action="store_true",
        help="begin a device with its own memory, a driver in C, and a backend that runs on it",
    )
    parser.add_argument("--into", type=Path, default=Path(), metavar="FOLDER", help="default: here")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand."""
    folder = new_backend(args.name, args.into, device=args.device)
    if args.json:
        print_json({"folder": str(folder)})
        return 0
    print(
        f"made {folder}; now\n\n  cd {folder}\n  pip install -e '.[test]'\n  pytest -s\n"
        f"  byoc run resnet50 --targets {args.name}"
    )
    return 0


def new_backend(name: str, into: Path, *, device: bool = False) -> Path:
    """Writes the package and returns its folder.

    Raises:
        BackendError: the name will not do, or the folder exists.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise BackendError(
            f"a backend's name is a Python identifier in lower case, such as my_npu; found '{name}'"
        )
    if name in backend_names():
        raise BackendError(f"there is a backend '{name}' already; choose another name")
    if find_spec(name) is not None:
        raise BackendError(f"there is a module '{name}' already; choose another name")
    folder = into / name
    if folder.exists():
        raise BackendError(f"{folder} exists already; choose another name, or --into a folder")
    title = "".join(part.title() for part in name.split("_"))
    words = {"@NAME@": name, "@CLASS@": f"{title}Backend", "@DEVICE@": f"{title}Device"}
    kind, files = ("device", _DEVICE) if device else ("backend", _BACKEND)
    for template, target in files.items():
        text = (_TEMPLATES / kind / f"{template}.template").read_text()
        for place, word in words.items():
            text = text.replace(place, word)
        path = folder / target.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
