"""Content of a model when `compile` was called."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from byoc_mlir.errors import InvalidModelError
from byoc_mlir.files import open_file, read_file
from byoc_mlir.frontend.files.external_data import ExternalFiles

if TYPE_CHECKING:
    from onnx import ModelProto

    from byoc_mlir.compiler.cache.folder import FileDigests


class Snapshot:
    """An ONNX model as `compile` found it, so that the cache's key matches the compiled model.

    A file's bytes are kept until the model is parsed. If they are needed later, they are read
    again, and refused if they have changed.
    """

    def __init__(self, digest: str, path: Path | None, content: bytes | None):
        self.digest = digest
        """SHA-256 of the bytes."""
        self.path = path
        self.files = None if path is None else ExternalFiles(path)
        """The model's external data."""
        self._content = content
        self._message: ModelProto | None = None

    @staticmethod
    def found(model: object, known: FileDigests | None = None) -> Snapshot | None:
        """Returns the content of a model, without keeping a file's bytes; `None` for other models.

        Args:
            known: digests of files that other processes have hashed.

        Raises:
            InvalidModelError: the file cannot be read.
        """
        if isinstance(model, str | Path) and Path(model).suffix != ".mlir":
            with open_file(model, InvalidModelError) as file:
                if known is None:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                else:
                    digest = known.of(file)
            return Snapshot(digest, Path(model), None)
        content = model if isinstance(model, bytes) else _serialised(model)
        return None if content is None else Snapshot(_sha256(content), None, content)

    @staticmethod
    def of_file(path: Path) -> Snapshot:
        """Reads the current content of a file, to compile it.

        Raises:
            InvalidModelError: the file cannot be read.
        """
        content = read_file(path, InvalidModelError)
        return Snapshot(_sha256(content), path, content)

    @property
    def message(self) -> ModelProto:
        """Returns the parsed and checked model, and keeps it until a caller takes it.

        Raises:
            InvalidModelError: the model is not valid, or its file was changed.
        """
        if self._message is None:
            self._message = self._parsed()
        return self._message

    def take(self, holds_bytes: bool = False) -> ModelProto:
        """Returns the model like `message`, but does not keep it.

        Args:
            holds_bytes: True to keep the bytes of a file for the next caller.
        """
        message, self._message = self.message, None
        if not holds_bytes:
            self.release()
        return message

    def release(self) -> None:
        """Frees a file's bytes."""
        if self.path is not None:
            self._content = None

    def _parsed(self) -> ModelProto:
        from byoc_mlir.frontend.files.load import load_model

        content = self._content
        if self.path is None:
            assert content is not None
            return load_model(content)
        if content is None:
            content = read_file(self.path, InvalidModelError)
            if _sha256(content) != self.digest:
                raise InvalidModelError(
                    f"'{self.path}' was changed after the model was compiled; compile it again"
                )
        return load_model(content, f"'{self.path}'")


def _serialised(model: object) -> bytes | None:
    onnx = sys.modules.get("onnx")  # a caller who has a `ModelProto` has imported it
    if onnx is None or not isinstance(model, onnx.ModelProto):
        return None
    return cast("ModelProto", model).SerializeToString(deterministic=True)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
