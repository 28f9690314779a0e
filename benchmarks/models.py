"""Models by the names that the command line takes: `resnet50`, `resnet50@8` for batch 8."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
    """Returns all names without a batch."""
    return [*NETWORKS, *light_networks()]


PRECISIONS = ("f32", "int8", "bf16")

_SAMPLES = 4
"""Number of random inputs for the ranges of a quantised model."""


def write_model(name: str, folder: Path, precision: str = "f32") -> tuple[Path, Path]:
    """Writes the model, quantised for `int8`, and its inputs.

    Returns:
        Both paths (`.onnx`, `.npz`).
    """
    model = _build(name)
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    if precision == "int8":
        quantise(model, path)
    inputs = path.with_suffix(".npz")
    np.savez(inputs, allow_pickle=False, **random_inputs(model))
    return path, inputs


def quantise(model: ModelProto, path: Path, dims: Mapping[str, int] | None = None) -> None:
    """Replaces a model in a file by its integer form, from ONNX Runtime's tools.

    Activations are u8 and weights s8, per channel: x86 instructions for bytes take this form, and
    ONNX Runtime's documentation recommends it there. With s8 activations, its default, OpenVINO
    computes everything in f32 with AMX, and ONNX Runtime's convolutions run at half the speed.

    Args:
        dims: sizes of symbolic dimensions for the samples.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Samples(CalibrationDataReader):
        def __init__(self) -> None:
            samples = range(1, 1 + _SAMPLES)
            self.left = [random_inputs(model, seed, dims) for seed in samples]

        def get_next(self) -> Any:
            return self.left.pop() if self.left else None

    quant_pre_process(path, path, skip_symbolic_shape=True)
    quantize_static(
        path,
        path,
        Samples(),
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )


def _build(name: str) -> ModelProto:
    base, _, batch = name.partition("@")
    if base in NETWORKS:
        return NETWORKS[base](batch=int(batch or 1))
    return with_random_weights(onnx.load(light_networks()[base]))
