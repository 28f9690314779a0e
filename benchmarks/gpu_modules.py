"""PyTorch modules on a GPU, of the sizes of bundled networks, with random weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

_BLOCKS = ((64, 3), (128, 4), (256, 6), (512, 3))
"""Width and number of blocks of ResNet-50's stages."""


class _Block(nn.Module):
    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.body = nn.Sequential(
            *_convolution(channels, width, 1, 1),
            nn.ReLU(),
            *_convolution(width, width, 3, stride),
            nn.ReLU(),
            *_convolution(width, 4 * width, 1, 1),
        )
        same = channels == 4 * width and stride == 1
        self.side = (
            nn.Sequential()
            if same
            else nn.Sequential(*_convolution(channels, 4 * width, 1, stride))
        )

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.body(x) + self.side(x))


def _convolution(channels: int, width: int, kernel: int, stride: int) -> list[nn.Module]:
    convolution = nn.Conv2d(channels, width, kernel, stride, kernel // 2, bias=False)
    return [convolution, nn.BatchNorm2d(width)]


def _resnet50() -> nn.Module:
    layers: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for number, (width, count) in enumerate(_BLOCKS):
        for index in range(count):
            layers.append(_Block(channels, width, 2 if number and not index else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000))


class _Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, 768)
        layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 12)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.layers(self.words(tokens))


def module_of(name: str, batch: int, precision: str) -> tuple[nn.Module, tuple[Tensor, ...]]:
    """Returns a module and its inputs on the GPU."""
    module = (_resnet50() if name == "resnet50" else _Bert()).eval().cuda()
    if name == "resnet50":
        given = torch.randn(batch, 3, 224, 224, device="cuda")
        module = module.to(memory_format=torch.channels_last)
        given = given.contiguous(memory_format=torch.channels_last)
    else:
        given = torch.randint(30522, (batch, 128), device="cuda")
    if precision != "f16":
        return module, (given,)
    return module.half(), (given.half() if given.is_floating_point() else given,)
