"""Small models, and files with changed metadata."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from helpers.models import parsed

from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.files.container import FOOTER_BYTES

HASH_BYTES = 32


def inputs_for(executable: Executable, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    """Returns seeded inputs for a model of static shapes."""
    generator = np.random.default_rng(seed)
    return {
        info.name: generator.standard_normal([int(size) for size in info.shape]).astype(info.dtype)
        for info in executable.inputs
    }


def elementwise_model() -> onnx.ModelProto:
    """Returns the model `max(x + y, 0) * y`, all of shape [4, 6]: additions for backends, nothing
    heavy.
    """
    nodes = "[sum] s = Add (x, y) [relu] p = Relu (s) [product] out = Mul (p, y)"
    return parsed("(float[4, 6] x, float[4, 6] y) => (float[4, 6] out)", nodes, opset=21)


def change_document(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Changes the metadata of an artifact, and updates footer and hash."""
    data = path.read_bytes()
    head = data[-FOOTER_BYTES:-HASH_BYTES]
    offset = int.from_bytes(head[16:24], "little")
    document = json.loads(data[offset:-FOOTER_BYTES])
    change(document["content"]["plan"]["program"])
    text = json.dumps(document).encode()
    rewrite(path, data[:offset] + text + head[:24] + len(text).to_bytes(8, "little"))


def rewrite(path: Path, content: bytes) -> None:
    """Writes the content of an artifact, and its hash."""
    path.unlink()  # a library in use is mapped: a new file, not new content
    path.write_bytes(content + hashlib.sha256(content).digest())


def run_python(code: str, *arguments: str | Path, expect: int = 0, **environment: str) -> str:
    """Runs a program in a new process and returns its output."""
    result = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert result.returncode == expect, result.stderr
    return result.stdout
