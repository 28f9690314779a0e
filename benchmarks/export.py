"""Export of architectures of PyTorch packages as ONNX models, with random weights and one input
each.

    export.py FOLDER PACKAGE:NAME...

The script runs in a separate environment: see `architectures.py`. Networks that cannot be exported
are reported and skipped. Initial biases and scales that are all zeros or ones would hide mistakes:
they are drawn at random, too.
"""

# pyright: basic

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

_IMAGE = (1, 3, 224, 224)
_LAYERS = 2
_VOCABULARY = 1000
_SMALL = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
}
"""Sizes for decoders whose usual ones have billions of weights."""

_SMALL_KINDS = frozenset(("bloom", "gemma2", "llama", "mamba", "phi3", "qwen3"))


class _Positional(nn.Module):
    """Wrapper of a `transformers` model that takes its inputs by position, and returns tensors
    only.
    """

    def __init__(self, model: nn.Module, names: tuple[str, ...]):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = self.model(**dict(zip(self.names, inputs, strict=True)), return_dict=True)
        return tuple(value for value in outputs.values() if torch.is_tensor(value))


def _timm(name: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    import timm

    model = timm.create_model(name, pretrained=False)
    return model, (torch.randn(1, *model.default_cfg.get("input_size", _IMAGE[1:])),)


def _torchvision(name: str) -> tuple[nn.Module, tuple[object, ...]]:
    from torchvision.models import detection, get_model_builder, optical_flow, video

    builder = get_model_builder(name)
    module = sys.modules[builder.__module__]
    options = {"init_weights": False} if name == "googlenet" else {}
    if "backbone" in module.__name__ or "weights_backbone" in builder.__annotations__:
        options["weights_backbone"] = None
    model = builder(**options)
    if module.__name__.startswith(detection.__name__):
        return model, ([torch.rand(3, 256, 320)],)
    if module.__name__.startswith(video.__name__):
        return model, (torch.randn(1, 3, 8, 112, 112),)
    if module.__name__.startswith(optical_flow.__name__):
        frame = torch.randn(1, 3, 128, 160)
        return model, (frame, frame + 0.1)
    return model, (torch.randn(_IMAGE),)


def _transformers(kind: str) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.for_model(kind)
    wanted = {"num_hidden_layers": _LAYERS, "n_layer": _LAYERS, "vocab_size": _VOCABULARY}
    for key, value in (wanted | (_SMALL if kind in _SMALL_KINDS else {})).items():
        if hasattr(config, key):
            setattr(config, key, value)
    for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if getattr(config, key, None) is not None:
            setattr(config, key, 1)
    config.use_cache = False
    model = AutoModel.from_config(config, attn_implementation="eager")
    if model.main_input_name == "pixel_values":
        return _Positional(model, ("pixel_values",)), (torch.randn(_IMAGE),)
    if model.main_input_name == "input_values":
        return _Positional(model, ("input_values",)), (torch.randn(1, 16000),)
    mask = torch.ones(2, 17, dtype=torch.long)
    mask[1, 12:] = 0
    tokens = torch.randint(5, 900, mask.shape)
    return _Positional(model, ("input_ids", "attention_mask")), (tokens, mask)


_PACKAGES: dict[str, Callable[[str], tuple[nn.Module, tuple[object, ...]]]] = {
    "timm": _timm,
    "torchvision": _torchvision,
    "transformers": _transformers,
}


def _shake(model: nn.Module) -> None:
    """Replaces constant parameters, and the statistics of batch norms, by random values."""
    with torch.no_grad():
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.copy_(torch.randn_like(buffer) * 0.1)
            if name.endswith("running_var"):
                buffer.copy_(torch.rand_like(buffer) + 0.5)
        for parameter in model.parameters():
            first = parameter.reshape(-1)[:1]
            if parameter.numel() > 1 and bool((parameter == first).all()):
                middle = 1.0 if first.item() != 0 else 0.0
                parameter.copy_(middle + (torch.rand_like(parameter) - 0.5) * 0.4)


def _write(folder: Path, model: nn.Module, inputs: tuple[object, ...]) -> None:
    _shake(model.eval())
    with torch.no_grad():
        detector = isinstance(inputs[0], list)  # only the older exporter takes lists of images
        written = str(folder / "model.onnx")
        if detector:
            torch.onnx.export(model, inputs, written, dynamo=False, verbose=False)
        else:
            torch.onnx.export(model, inputs, dynamo=True, verbose=False).save(written)
    tensors = inputs[0] if detector else inputs
    names = [value.name for value in onnx.load(written, load_external_data=False).graph.input]
    arrays = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=True)}
    np.savez(folder / "0.npz", allow_pickle=False, **arrays)


def main() -> None:
    """Writes the models named on the command line, and skips those that fail."""
    folder, *names = sys.argv[1:]
    for number, one in enumerate(names):
        torch.manual_seed(number)
        package, _, name = one.partition(":")
        place = Path(folder) / f"{package}-{name}"
        place.mkdir()
        try:
            _write(place, *_PACKAGES[package](name))
        except Exception as error:  # of whatever a package does; the others go on
            print(f"{one} is skipped: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
            for file in place.iterdir():
                file.unlink()
            place.rmdir()


if __name__ == "__main__":
    main()
