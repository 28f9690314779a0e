"""`torch.compile(module, backend="byoc_mlir")`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from networks import Branch, Condition, Encoder, ResNet, randomised, tokens
from torch import Tensor, nn

from byoc_mlir.torch.dynamo import CompiledGraph, dynamo_backend


class Counted:
    """Backend that records the graphs that it gets."""

    def __init__(self) -> None:
        self.graphs: list[CompiledGraph] = []

    def __call__(self, graph: torch.fx.GraphModule, examples: list[Tensor]) -> CompiledGraph:
        self.graphs.append(dynamo_backend(graph, examples))
        return self.graphs[-1]

    @property
    def programs(self) -> list[int]:
        """Returns the number of programs of each graph."""
        return [graph.programs for graph in self.graphs]


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.compiler.reset()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("error", "a graph runs in PyTorch")
        yield


def _check(compiled: Callable[..., Tensor], module: nn.Module, *arguments: Tensor) -> None:
    torch.testing.assert_close(compiled(*arguments), module(*arguments), rtol=1e-5, atol=1e-5)


def test_the_backend_has_a_name() -> None:
    module = randomised(nn.Linear(4, 3))
    _check(torch.compile(module, backend="byoc_mlir"), module, torch.ones(2, 4))
    options = {"targets": (), "threads": 1}
    _check(torch.compile(module, backend="byoc_mlir", options=options), module, torch.ones(2, 4))


def test_a_network_of_convolutions_and_its_changes() -> None:
    module, backend, x = randomised(ResNet()), Counted(), torch.randn(2, 3, 32, 32)
    compiled = torch.compile(module, backend=backend)
    _check(compiled, module, x)
    _check(compiled, module, x)
    assert backend.programs == [1]
    module.head.bias.add_(1)  # the program has the parameters as they were
    _check(compiled, module, x)
    assert backend.programs == [1]


def test_an_encoder_whose_lengths_change() -> None:
    module, backend = randomised(Encoder(layers=1)), Counted()
    compiled = torch.compile(module, backend=backend)
    for length, batch in ((16, 2), (24, 2), (7, 2), (40, 2), (33, 3), (12, 5)):
        _check(compiled, module, *tokens(length, batch))
    assert backend.programs == [1, 1, 1]  # of numbers, of one symbol, of two


@pytest.mark.parametrize(("kind", "graphs"), [(Branch, 3), (Condition, 1)])
def test_a_branch(kind: type[Branch], graphs: int) -> None:
    module, backend = randomised(kind()), Counted()
    compiled = torch.compile(module, backend=backend)
    for seed in range(6):
        _check(compiled, module, torch.randn(3, 8, generator=torch.Generator().manual_seed(seed)))
    assert backend.programs == [1] * graphs


def test_layers_that_share_a_graph_keep_their_parameters() -> None:
    layers, backend = [randomised(nn.Linear(4, 4), seed) for seed in range(3)], Counted()
    x = torch.randn(2, 4)
    compiled = [torch.compile(layer, backend=backend) for layer in layers]
    for _ in range(2):
        for one, layer in zip(compiled, layers, strict=True):
            _check(one, layer, x)
    assert sum(backend.programs) == 3


def test_numbers_that_are_arguments() -> None:
    class Repeats(nn.Module):
        def forward(self, x: Tensor, count: int) -> Tensor:
            return x[:, :count] * count

    backend, module, x = Counted(), Repeats(), torch.arange(24.0).reshape(2, 12)
    compiled = torch.compile(module, backend=backend)
    for count in (2, 3, 4, 5, 4):
        torch.testing.assert_close(compiled(x, count), module(x, count))


def test_gradients_are_pytorch_s() -> None:
    module = randomised(nn.Linear(4, 3))
    compiled = torch.compile(module, backend="byoc_mlir")
    with torch.enable_grad(), pytest.warns(UserWarning, match="gradients are wanted"):
        compiled(torch.ones(2, 4)).sum().backward()
    assert module.weight.grad is not None
    _check(compiled, module, torch.ones(2, 4))


def test_what_cannot_be_compiled_is_pytorch_s() -> None:
    class Inverts(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.linalg.eigvals(x).real

    compiled = torch.compile(Inverts(), backend="byoc_mlir")
    message = r"a graph runs in PyTorch: .*\n.*test_torch_compile.py:\d+ \(aten.*eig"
    with pytest.warns(UserWarning, match=message):
        result = compiled(torch.eye(3))
    assert result.tolist() == [1, 1, 1]
    assert compiled(2 * torch.eye(3)).tolist() == [2, 2, 2]
