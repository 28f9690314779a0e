"""Hashes of the LLVM IR of networks of fixed shapes.

`python tests/unit/lowering/fixed_code.py` writes the hashes anew, after an intended change.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from unittest.mock import patch

from onnx import ModelProto

from byoc_mlir.compiler import pipeline
from byoc_mlir.compiler.build import Build
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import read_source
from byoc_mlir.lowering import host_pipeline
from byoc_mlir.lowering.llvm_ir.translate import translate_module
from byoc_mlir.runtime.system.cpu import Cpu, features_up_to
from byoc_mlir.testing.networks import NETWORKS

HASHES = Path(__file__).with_suffix(".json")

_AVX2 = Cpu("x86_64", tuple(sorted(features_up_to("avx2"))))

_SIZES = {
    "mlp3": {"batch": 4},
    "mnist": {"batch": 2},
    "lstm2": {"steps": 6},
    "bert6": {"tokens": 12, "vocabulary": 16},
    "gpt4": {"tokens": 8, "vocabulary": 32},
}


def networks() -> dict[str, ModelProto]:
    """Returns networks of fixed shapes, by name."""
    return {name: NETWORKS[name](**sizes) for name, sizes in _SIZES.items()}


def code_hash(model: ModelProto) -> str:
    """Returns the hash of a model's LLVM IR on the host, for a processor with AVX2 and two
    threads."""
    source = read_source(model)
    shapes = {info.name: tuple(map(int, info.shape)) for info in source.inputs}
    build = Build(source, shapes, {}, CompileOptions(b"", (), threads=2))
    with (
        patch.object(host_pipeline, "vector_bits", lambda _: 256),
        patch.object(Cpu, "host", lambda: _AVX2),
    ):
        pipeline.import_model(build)
        pipeline.canonicalise(build)
        pipeline.partition(build)
        pipeline.generate(build)
        pipeline.lower(build)
    return hashlib.sha256(translate_module(build.module).encode()).hexdigest()


if __name__ == "__main__":
    found = {name: code_hash(model) for name, model in networks().items()}
    HASHES.write_text(json.dumps(found, indent=2) + "\n")
