"""Networks of the families that the tests compile, small enough to compile in seconds."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """Two convolutions with a residual connection around them."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(out)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(out)
        self.around: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.around = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(y)) + self.around(x))


class ResNet(nn.Module):
    """Residual network; `widths=(64, 128, 256, 512), blocks=2` is ResNet-18."""

    def __init__(
        self, widths: tuple[int, ...] = (16, 32), blocks: int = 1, classes: int = 10
    ) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.norm = nn.BatchNorm2d(widths[0])
        self.pool = nn.MaxPool2d(3, 2, 1)
        layers: list[nn.Module] = []
        channels = widths[0]
        for number, width in enumerate(widths):
            for index in range(blocks):
                stride = 2 if number and not index else 1
                layers.append(Block(channels, width, stride))
                channels = width
        self.layers = nn.Sequential(*layers)
        self.head = nn.Linear(channels, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.pool(functional.relu(self.norm(self.stem(image))))
        return self.head(self.layers(x).mean((2, 3)))


class Encoder(nn.Module):
    """BERT-style encoder: tokens and a mask to vectors, `[batch, length, width]`."""

    def __init__(
        self, width: int = 64, heads: int = 4, layers: int = 2, vocabulary: int = 500
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1])
        x = self.norm(self.words(tokens) + self.places(places))
        for layer in self.layers:
            x = layer(x, mask)
        return x


class EncoderLayer(nn.Module):
    """Attention and two dense layers, each with a residual connection and a normalisation."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.query_key_value(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        allowed = mask[:, None, None, :]
        y = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        y = y.transpose(1, 2).reshape(batch, length, width)
        x = self.attention_norm(x + self.output(y))
        return self.norm(x + self.down(functional.gelu(self.up(x))))


class Branch(nn.Module):
    """Module with data-dependent control flow: two graphs for `torch.compile`."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.positive, self.negative = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.inner(x))
        if y.sum() > 0:
            return self.positive(y)
        return self.negative(y) * 2


class Condition(Branch):
    """Module with the control flow of `Branch` in one graph."""

    def forward(self, x: Tensor) -> Tensor:
        y = torch.tanh(self.inner(x))
        return torch.cond(y.sum() > 0, self.positive, lambda z: self.negative(z) * 2, (y,))


def randomised(module: nn.Module, seed: int = 0) -> nn.Module:
    """Returns the module in evaluation mode, with statistics that batch norm could have found."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            if name.endswith("running_var"):
                tensor.uniform_(0.5, 1.5, generator=generator)
            elif tensor.is_floating_point() and tensor.dim() < 2:
                tensor.uniform_(-0.5, 0.5, generator=generator)
            elif tensor.is_floating_point():
                tensor.normal_(0, (tensor[0].numel()) ** -0.5, generator=generator)
    return module.eval()


def tokens(length: int, batch: int = 2, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Returns inputs of an encoder: the last row ends earlier."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.ones(batch, length, dtype=torch.bool)
    mask[-1, max(1, length // 2) :] = False
    return torch.randint(0, 500, (batch, length), generator=generator), mask
