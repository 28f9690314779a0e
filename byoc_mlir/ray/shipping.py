"""Distribution of a model to the nodes of a cluster: each node gets it once."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from byoc_mlir.compiler.cache.folder import own_folder
from byoc_mlir.errors import InvalidModelError
from byoc_mlir.extras import import_extra
from byoc_mlir.files import read_file
from byoc_mlir.frontend.files.external_data import ExternalFiles
from byoc_mlir.frontend.files.load import parse_model
from byoc_mlir.frontend.files.tensor_check import external_locations
from byoc_mlir.ray.served import EXTRA


@dataclass(frozen=True)
class ShippedModel:
    """Files of a model in Ray's object store.

    A node fetches an object once for all of its workers, and the first of them writes the files.
    """

    name: str
    """Name of the model's file."""
    digest: str
    """Hash of all files."""
    files: Mapping[str, Any]
    """References to their bytes, by paths relative to the model's folder."""

    def place(self) -> Path:
        """Returns the path of the model's file on this node, and writes the files there first if
        they are missing.

        Raises:
            UnsafeCacheError: others may write to the folder for it.
            ByocError: the folder cannot be made.
        """
        owner = own_folder(Path(tempfile.gettempdir()) / f"byoc_mlir_{os.getuid()}")
        folder = own_folder(owner / self.digest)
        for name, reference in self.files.items():
            path = folder / name
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                _write(path, import_extra("ray", EXTRA).get(reference))
        return folder / self.name


def _write(path: Path, content: bytes) -> None:
    """Writes a file that appears complete or not at all, even if several processes write it."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def ship(path: str | Path) -> ShippedModel:
    """Puts a model, an `.onnx` file with its external data or a `.so` file, into the object store.

    Raises:
        MissingExtraError: Ray is not installed.
        InvalidModelError: the files cannot be read.
        UnsafeModelError: external data is outside of the model's folder.
    """
    path = Path(path)
    contents = {path.name: read_file(path, InvalidModelError)}
    if path.suffix == ".onnx":
        files, model = ExternalFiles(path), parse_model(contents[path.name], f"'{path}'")
        for name in sorted(external_locations(model)):
            contents[name] = bytes(files.data(name, f"'{path}'"))
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name}\n{len(content)}\n".encode())
        digest.update(content)
    put = import_extra("ray", EXTRA).put
    files = {name: put(content) for name, content in contents.items()}
    return ShippedModel(path.name, digest.hexdigest(), files)
