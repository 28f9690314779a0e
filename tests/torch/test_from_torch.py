"""Modules of PyTorch, compiled whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from networks import Condition, Encoder, ResNet, randomised, tokens
from torch import Tensor, nn

import byoc_mlir
from byoc_mlir.errors import ExecutionError, InvalidInputError, UnsupportedModelError


def _check(compiled: Callable[..., Tensor], module: nn.Module, *arguments: Tensor) -> None:
    with torch.no_grad():
        wanted = module(*arguments)
    torch.testing.assert_close(compiled(*arguments), wanted, rtol=1e-5, atol=1e-5)


def test_a_network_of_convolutions() -> None:
    module = randomised(ResNet())
    compiled = byoc_mlir.from_torch(module, (torch.randn(2, 3, 32, 32),))
    for seed in range(2):
        generator = torch.Generator().manual_seed(seed)
        _check(compiled, module, torch.randn(2, 3, 32, 32, generator=generator))
    assert compiled.executable.report().counts()


def test_an_encoder_whose_lengths_change_is_one_program() -> None:
    module = randomised(Encoder(layers=1))
    sizes = {0: "batch", 1: "length"}
    compiled = byoc_mlir.from_torch(
        module, tokens(8, batch=1), dynamic_shapes={"tokens": sizes, "mask": sizes}, targets=()
    )
    assert compiled.executable.inputs[0].shape == ("batch", "length")
    for length, batch in ((8, 1), (13, 3), (1, 2), (21, 1)):
        _check(compiled, module, *tokens(length, batch))
    (variant,) = compiled.executable.report().variants
    assert not variant.reason


def test_a_condition() -> None:
    module = randomised(Condition())
    compiled = byoc_mlir.from_torch(module, (torch.ones(3, 8),))
    ways = set[bool]()
    for seed in range(6):
        x = torch.randn(3, 8, generator=torch.Generator().manual_seed(seed))
        ways.add(bool(torch.tanh(module.inner(x)).sum() > 0))
        _check(compiled, module, x)
    assert ways == {True, False}


class Structured(nn.Module):
    """Module whose arguments and results are no plain tensors."""

    def forward(
        self, pair: tuple[Tensor, Tensor], scale: float, *, shift: Tensor | None = None
    ) -> dict[str, object]:
        total = pair[0] + pair[1] * scale
        if shift is not None:
            total = total + shift
        return {"total": total, "parts": [pair[0] * 2, None], "scale": scale}


def test_structures_come_back_as_they_are() -> None:
    x, y, shift = torch.arange(4.0), torch.ones(4), torch.full((4,), 7.0)
    compiled = byoc_mlir.from_torch(Structured(), ((x, y), 3.0), {"shift": shift})
    result = compiled((x, y), 3.0, shift=shift)
    assert list(result) == ["total", "parts", "scale"]
    assert result["total"].tolist() == [10, 11, 12, 13]
    assert result["parts"][0].tolist() == [0, 2, 4, 6]
    assert result["parts"][1] is None
    assert result["scale"] == 3.0
    with pytest.raises(InvalidInputError, match=r"compiled for 3\.0"):
        compiled((x, y), 4.0, shift=shift)
    with pytest.raises(InvalidInputError, match="the module was compiled for"):
        compiled([x, y], 3.0, shift=shift)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int32])
def test_other_types(dtype: torch.dtype) -> None:
    class Sum(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + x

    x = torch.arange(6).reshape(2, 3).to(dtype)
    result = byoc_mlir.from_torch(Sum(), (x,))(x)
    assert result.dtype == dtype
    assert torch.equal(result, x + x)


def test_arguments_may_be_views() -> None:
    module = randomised(nn.Linear(6, 4))
    compiled = byoc_mlir.from_torch(module, (torch.ones(3, 6),))
    _check(compiled, module, torch.randn(6, 3).T)


def test_parameters_are_not_copied() -> None:
    module = randomised(nn.Embedding(200, 64))
    compiled = byoc_mlir.from_torch(module, (torch.tensor([3, 5]),), targets=())
    held = [np.shares_memory(one, module.weight.detach().numpy()) for one in _weights(compiled)]
    assert any(held)


@pytest.mark.parametrize("targets", [(), ("dnnl",), None], ids=str)
def test_dense_layers_read_parameters_where_they_are(targets: tuple[str, ...] | None) -> None:
    module = randomised(nn.Linear(160, 96))
    compiled = byoc_mlir.from_torch(module, (torch.ones(40, 160),), targets=targets)
    _check(compiled, module, torch.randn(40, 160))
    weights = [one for one in _weights(compiled) if one.size == 160 * 96]
    assert weights
    assert all(np.shares_memory(one, module.weight.detach().numpy()) for one in weights)


@pytest.mark.parametrize("targets", [(), ("dnnl",)], ids=str)
def test_parameters_are_copied_on_request(targets: tuple[str, ...]) -> None:
    module = randomised(nn.Sequential(nn.Embedding(200, 160), nn.Linear(160, 96)))
    x = torch.arange(40)
    compiled = byoc_mlir.from_torch(module, (x,), copy_parameters=True, targets=targets)
    _check(compiled, module, x)
    own = [one.detach().numpy() for one in module.parameters()]
    held = _weights(compiled)
    assert held
    assert not any(np.shares_memory(one, other) for one in held for other in own)


def _weights(compiled: byoc_mlir.torch.CompiledModule) -> list[np.ndarray]:
    return list(compiled.executable.program.code.weights.values())


def test_a_changed_parameter_is_noticed() -> None:
    module = randomised(nn.Linear(40, 30))
    compiled = byoc_mlir.from_torch(module, (torch.ones(3, 40),))
    module.load_state_dict({name: tensor + 1 for name, tensor in module.state_dict().items()})
    with pytest.raises(ExecutionError, match="parameter 'weight' was changed"):
        compiled(torch.ones(3, 40))
    _check(byoc_mlir.from_torch(module, (torch.ones(3, 40),)), module, torch.ones(3, 40))


def test_an_example_is_left_as_it_was() -> None:
    x = torch.ones(2, 4)
    module = randomised(nn.Linear(4, 3))
    with pytest.raises(UnsupportedModelError, match="Constraints violated"):
        byoc_mlir.from_torch(module, (x,), dynamic_shapes=({1: "width"},))
    _check(byoc_mlir.from_torch(module, (x,)), module, x)


class Several(nn.Module):
    def forward(self, x: Tensor, factor: float = 1.0, **others: Tensor) -> Tensor:
        return x * factor + sum(one.sum() for one in others.values())


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"w": {0: "n"}, "y": None}, r"is \{'w': .*each of: 'x', 'y'"),
        ({"x": {0: "n"}}, "each of: 'x', 'y'"),
        (({0: "n"},), "each of: 'x', 'others'"),
        ("n", "dynamic_shapes is 'n'"),
        ({"x": {2: "n"}, "y": None}, r"\['x'\] names dimension 2 .* \[2, 4\]; accepted: 0, 1"),
        ({"x": {-1: "n"}, "y": None}, "dimension -1"),
        ({"x": {"n": 0}, "y": None}, "dimension 'n'"),
        ({"x": ["n"], "y": None}, "accepted are .* a list of 2"),
        ({"x": {0: "n"}, "y": {0: "n"}}, "'n', and in the example the sizes 3 and 2"),
        ({"x": None, "others": {"z": None}}, r"\['others'\] is .*each of: 'y'"),
    ],
)
def test_sizes_that_the_example_does_not_have(shapes: object, message: str) -> None:
    keywords = {"y": torch.ones(3)}
    with pytest.raises(InvalidInputError, match=message):
        byoc_mlir.from_torch(Several(), (torch.ones(2, 4),), keywords, dynamic_shapes=shapes)


def test_sizes_of_what_is_no_tensor() -> None:
    with pytest.raises(InvalidInputError, match=r"\['factor'\] .* 3\.0 there, which is no tensor"):
        byoc_mlir.from_torch(Several(), (torch.ones(2), 3.0), dynamic_shapes=(None, {0: "n"}))


@pytest.mark.parametrize(
    "shapes",
    [
        {"x": None, "y": {0: "n"}},
        {"x": None, "others": {"y": ["n"]}},
        (None, {"y": ["n"]}),
        {"y": {0: "n"}, "x": None},
    ],
    ids=str,
)
def test_sizes_of_other_keywords(shapes: object) -> None:
    x, y = torch.ones(2, 4), torch.arange(3.0)
    compiled = byoc_mlir.from_torch(Several(), (x,), {"y": y}, dynamic_shapes=shapes)
    assert [one.shape for one in compiled.executable.inputs] == [(2, 4), ("n",)]
    assert compiled(x, y=torch.arange(5.0)).tolist() == (x + 10).tolist()


def test_parameters_of_a_module_with_other_keywords_are_its_own() -> None:
    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor, **others: Tensor) -> Tensor:
            return self.linear(x) + others["y"]

    module = randomised(Shifted())
    x, y = torch.randn(3, 4), torch.randn(4)
    sizes = {"x": {0: "n"}, "y": None}
    compiled = byoc_mlir.from_torch(module, (x[:2],), {"y": y}, dynamic_shapes=sizes)
    with torch.no_grad():
        torch.testing.assert_close(compiled(x, y=y), module(x, y=y), rtol=1e-5, atol=1e-5)
        module.linear.weight += 1
    with pytest.raises(ExecutionError, match=r"'linear\.weight' was changed"):
        compiled(x, y=y)


class Parts(nn.Module):
    def forward(self, parts: dict[str, Tensor], factor: float, x: Tensor) -> Tensor:
        return x * factor + parts["a"].sum() - parts["b"].sum()


@pytest.mark.parametrize(
    ("shapes", "named"),
    [
        ({"x": {0: "n"}, "factor": None, "parts": None}, [(3,), (3,), ("n", 4)]),
        (({"b": ["b"], "a": ["a"]}, None, {0: "n"}), [("a",), ("b",), ("n", 4)]),
        ({"factor": None, "x": None, "parts": (None, ["b"])}, [(3,), ("b",), (2, 4)]),
    ],
    ids=str,
)
def test_names_of_sizes_in_any_order(shapes: object, named: list[tuple[int | str, ...]]) -> None:
    module, x = Parts(), torch.randn(2, 4)
    parts = {"a": torch.randn(3), "b": torch.randn(3)}
    compiled = byoc_mlir.from_torch(module, (parts, 2.0, x), dynamic_shapes=shapes)
    assert [one.shape for one in compiled.executable.inputs] == named
    torch.testing.assert_close(compiled(parts, 2.0, x), module(parts, 2.0, x))


def test_an_output_that_has_another_name_in_onnx() -> None:
    x, y = torch.randn(2, 4), torch.randn(3)
    sizes = {"x": {0: "b", 1: "w"}, "y": {0: "n"}}
    compiled = byoc_mlir.from_torch(Several(), (x,), {"y": y}, dynamic_shapes=sizes)
    larger = torch.randn(3, 5)
    torch.testing.assert_close(compiled(larger, y=y), Several()(larger, y=y))


@pytest.mark.parametrize(
    ("example", "message"),
    [((), "missing a required argument: 'x'"), ((1, 2, 3), "too many positional arguments")],
    ids=["none", "too_many"],
)
def test_an_example_that_the_module_does_not_take(example: tuple[int, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        byoc_mlir.from_torch(Several(), example)


def test_gradients_are_refused() -> None:
    compiled = byoc_mlir.from_torch(randomised(nn.Linear(4, 2)), (torch.ones(3, 4),))
    x = torch.ones(3, 4, requires_grad=True)
    with pytest.raises(InvalidInputError, match="argument 'input' requires a gradient"):
        compiled(x)
    with torch.no_grad():
        assert not compiled(x).requires_grad


class Decides(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return -x


class Draws(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.rand_like(x)


class Inverts(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.eigvals(x).real


def _line(kind: type, text: str) -> str:
    lines, first = inspect.getsourcelines(kind)
    return (
        f"{Path(__file__).name}:{first + next(n for n, line in enumerate(lines) if text in line)}"
    )


@pytest.mark.parametrize(
    ("module", "place", "operation", "reason"),
    [
        (Decides(), _line(Decides, "if x.sum"), "Decides", "PyTorch cannot export it"),
        (Draws(), _line(Draws, "rand_like"), "aten.rand_like", "draws random numbers"),
        (Inverts(), _line(Inverts, "eigvals"), "eig", "no form of it in ONNX"),
        (nn.Dropout(), "", "dropout", "draws random numbers; for dropout, call module.eval()"),
        (nn.BatchNorm1d(4), "running_mean", "tensor", "call module.eval()"),
    ],
    ids=["decides", "draws", "eigenvalues", "dropout", "batch_norm"],
)
def test_what_cannot_be_exported(
    module: nn.Module, place: str, operation: str, reason: str
) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        byoc_mlir.from_torch(module, (torch.ones(4, 4),))
    problem = caught.value.problems[0]
    assert place in problem.node
    assert operation in problem.op_type
    assert reason in problem.reason


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(byoc_mlir.errors.ByocError, match=r"accepted is a torch\.nn\.Module"):
        byoc_mlir.from_torch(torch.sin, (torch.ones(3),))
    with pytest.raises(byoc_mlir.errors.ByocError, match="cache is not accepted"):
        byoc_mlir.from_torch(nn.ReLU(), (torch.ones(3),), cache="folder")
