"""Activations by built-in kernels, after primitives that run without them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dnnl_models import check, model, node
from onnx import ModelProto, NodeProto

Activation = Callable[[str, str], list[NodeProto]]


def _swish(x: str, y: str) -> list[NodeProto]:
    return [node("Sigmoid", x, f"{y}_s"), node("Mul", f"{x} {y}_s", y)]


def _gelu(approximate: str) -> Activation:
    return lambda x, y: [node("Gelu", x, y, approximate=approximate)]


ACTIVATIONS: dict[str, Activation] = {
    "swish": _swish,
    "gelu_erf": _gelu("none"),
    "gelu_tanh": _gelu("tanh"),
}


_CHOICES = pytest.mark.parametrize("choice", ["loop", "post_op"])


def _expect(built: ModelProto, name: str, choice: str, threads: int) -> None:
    """Checks the choice of an activation; oneDNN's own may be replaced if it is not accurate."""
    report = check(built, threads=threads, target=f"dnnl{{activation={choice}}}")
    found = {row.implementation for row in report.placed("dnnl")}
    assert choice == "post_op" or any(f"loop:{name}" in one for one in found)


@pytest.mark.values
@_CHOICES
@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(
    ("channels", "size", "groups", "kernel"), [(16, 13, 1, 1), (12, 9, 1, 3), (24, 8, 24, 3)]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_convolutions(
    name: str, channels: int, size: int, groups: int, kernel: int, threads: int, choice: str
) -> None:
    pads = [kernel // 2] * 4
    nodes = [
        node("Conv", "x w b", "c", pads=pads, group=groups),
        *ACTIVATIONS[name]("c", "a"),
        node("Conv", "a v", "y"),
    ]
    weights = {
        "w": (channels, channels // groups, kernel, kernel),
        "b": (channels,),
        "v": (8, channels, 1, 1),
    }
    built = model(nodes, {"x": (2, channels, size, size)}, weights)
    _expect(built, name, choice, threads)


@_CHOICES
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_products(name: str, choice: str) -> None:
    nodes = [node("MatMul", "x w", "m"), node("Add", "m b", "c"), *ACTIVATIONS[name]("c", "y")]
    built = model(nodes, {"x": (33, 20)}, {"w": (20, 37), "b": (37,)})
    _expect(built, name, choice, 1)


@_CHOICES
@pytest.mark.parametrize("anchor", ["MatMul", "ConvTranspose"])
def test_gelu_is_accurate_wherever_it_stands(anchor: str, choice: str) -> None:
    """Checks gelu before a product with another tensor, and after a separate bias."""
    shape, weights = ((33, 20), (20, 37)) if anchor == "MatMul" else ((1, 8, 9, 9), (8, 8, 3, 3))
    nodes = [
        node(anchor, "x w", "m"),
        node("Add", "m b", "c"),
        *ACTIVATIONS["gelu_erf"]("c", "a"),
        node("Mul", "a f"),
    ]
    bias = (37,) if anchor == "MatMul" else (8, 1, 1)
    built = model(nodes, {"x": shape}, {"w": weights, "b": bias, "f": bias})
    check(built, tolerance=2e-6, target=f"dnnl{{activation={choice}}}")


@_CHOICES
def test_results_that_are_read_twice_and_added_to(choice: str) -> None:
    nodes = [
        node("Conv", "x w", "c", pads=[1] * 4),
        *_swish("c", "a"),
        node("Conv", "a v", "d", pads=[1] * 4),
        node("Add", "d a", "e"),
        *_swish("e", "y"),
    ]
    built = model(nodes, {"x": (1, 16, 12, 12)}, dict.fromkeys("wv", (16, 16, 3, 3)))
    _expect(built, "swish", choice, 2)


def test_3x3_convolutions_may_use_winograd() -> None:
    nodes = [node("Conv", "x w b", "c", pads=[1] * 4), *_swish("c", "y")]
    weights = {"w": (64, 64, 3, 3), "b": (64,)}
    built = model(nodes, {"x": (1, 64, 40, 40)}, weights)
    target = "dnnl{activation=loop convolution=f4x3 layout=channels_last}"
    report = check(built, threads=1, tolerance=1e-4, target=target)
    found = {row.implementation for row in report.placed("dnnl")}
    assert any("winograd:f4x3 + loop:swish" in one for one in found)


def test_estimated_choices() -> None:
    """Checks the choice by estimate; with AVX-512, the library's Winograd fuses the
    activation."""
    nodes = [node("Conv", "x w b", "c", pads=[1] * 4), *_swish("c", "y")]
    built = model(nodes, {"x": (1, 64, 40, 40)}, {"w": (64, 64, 3, 3), "b": (64,)})
    report = check(built, threads=1, tolerance=1e-4)
    assert {row.placement for row in report} == {"dnnl"}
