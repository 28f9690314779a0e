"""The models by the names that the command line takes: `resnet50`, `resnet50@8` for batch 8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from byoc_mlir.testing.light import light_networks, with_random_weights
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.reference import random_inputs

SMALL = ("mlp3", "mnist")
"""Models whose call costs more than their arithmetic."""

DEFAULT = (
    "mlp",
    "resnet18",
    "resnet50",
    "resnet50@8",
    "mobilenet_v2",
    "efficientnet_b0",
    "vgg16",
    "inception_v3",
    "densenet121",
    "squeezenet",
    "shufflenet",
    "unet",
    "vit_tiny",
    "bert6",
    "gpt4",
    "lstm2",
    "ssd",
)


def known_models() -> list[str]:
    """All names without a batch."""
    return [*NETWORKS, *light_networks()]


def write_model(name: str, folder: Path) -> tuple[Path, Path]:
    """Writes the model and its inputs; returns both paths (`.onnx`, `.npz`)."""
    model = _build(name)
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    inputs = path.with_suffix(".npz")
    np.savez(inputs, allow_pickle=False, **random_inputs(model))
    return path, inputs


def _build(name: str) -> ModelProto:
    base, _, batch = name.partition("@")
    if base in NETWORKS:
        return NETWORKS[base](batch=int(batch or 1))
    return with_random_weights(onnx.load(light_networks()[base]))
