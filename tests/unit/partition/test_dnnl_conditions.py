"""Each side condition of oneDNN's pattern table, once broken: no composite, and the reason.

TVM's table accepts most of these: it looks at a bias under `relu` only, and at no constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from dnnl_graphs import ACTIVATIONS, C, Graph, anchor, bias_add, composites
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import elementwise as e
from byoc_mlir.dialects.relay import nn, reduce, transform, window
from byoc_mlir.transforms.partition_for import PartitionFor
from byoc_mlir.transforms.placement import placements


def reasons(module: ModuleOp) -> str:
    module.verify()
    PartitionFor(("dnnl",)).apply(Context(), module)
    module.verify()
    return "\n".join(row.reason for row in placements(module))


def assert_refused(g: Graph, result: SSAValue, row: str, reason: str) -> None:
    module = ModuleOp([g.function(result)])
    said = reasons(module)
    assert row not in composites(module)
    assert re.search(rf"dnnl\.{row}\b[^;]*: [^;]*{re.escape(reason)}", said), said


def wide(g: Graph) -> SSAValue:
    """Adds a convolution whose result has as many rows as channels, so that a bias fits either
    axis.
    """
    data, kernel = g.argument(1, C, C, 6), g.argument(C, C, 3, 3)
    return g.op(
        window.Conv2DOp, data, kernel, strides=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1]
    )


def added(kind: str, *shape: int) -> Callable[[Graph], SSAValue]:
    """Returns a function that adds the anchor plus an argument."""
    return lambda g: g.op(e.AddOp, anchor(g, kind), g.argument(*shape))


def combined(kind: str, *shape: int) -> Callable[[Graph], SSAValue]:
    """Returns a function that adds the anchor times an argument."""
    return lambda g: g.op(e.MultiplyOp, anchor(g, kind), g.argument(*shape))


SHAPES: dict[str, tuple[str, str, Callable[[Graph], SSAValue]]] = {
    "bias axis": (
        "conv2d_bias",
        "the bias runs along axis 2, not along the channels",
        lambda g: bias_add(g, wide(g), axis=2),
    ),
    "bias shape": ("conv2d_bias", "is not one value per channel", added("conv2d", 6, 6)),
    "dense bias shape": ("dense_bias", "is not one value per channel", added("dense", 5, 1)),
    "bias shape under an activation": (
        "conv2d_bias_tanh",
        "is not one value per channel",
        lambda g: g.op(e.TanhOp, added("conv2d", 6, 6)(g)),
    ),
    "bias shape, commuted": (
        "conv2d_bias",
        "is not one value per channel",
        lambda g: g.op(e.AddOp, g.argument(6, 6), anchor(g, "conv2d")),
    ),
    "residual shape": (
        "conv2d_bias_sum",
        "is broadcast to",
        lambda g: g.op(e.AddOp, bias_add(g, anchor(g, "conv2d")), g.argument(2, C, 6, 6)),
    ),
    "residual shape without bias": ("dense_sum", "is broadcast to", added("dense", 3, 5, C)),
    "slopes": (
        "conv2d_prelu",
        "are not one value per channel",
        lambda g: ACTIVATIONS["prelu"](g, anchor(g, "conv2d"), slopes=(6, 6)),
    ),
    "other operand broadcasts": (
        "conv2d_mul",
        "the result is broadcast to",
        combined("conv2d", 2, C, 6, 6),
    ),
    "other operand's shape": ("conv2d_mul", "nor one per channel", combined("conv2d", 6)),
}


@pytest.mark.parametrize("case", SHAPES)
def test_layouts_and_shapes(case: str):
    row, reason, make = SHAPES[case]
    g = Graph()
    assert_refused(g, make(g), row, reason)


@pytest.mark.parametrize("kind", ["conv2d", "dense"])
@pytest.mark.parametrize(
    ("activation", "constants"),
    [
        ("gelu_erf", {"root": 7.0}),
        ("gelu_erf", {"one": 3.0}),
        ("gelu_erf", {"half": 0.1}),
        ("gelu_tanh", {"three": 2.0}),
        ("gelu_tanh", {"cubic": 0.05}),
        ("gelu_tanh", {"root": 1.0}),
        ("gelu_tanh", {"one": 2.0}),
        ("gelu_tanh", {"half": 0.25}),
        ("mish", {"one": 2.0}),
        ("hardsigmoid", {"low": -1.0}),
        ("hardsigmoid", {"high": 2.0}),
        ("hardswish", {"low": -1.0}),
        ("hardswish", {"six": 5.0}),
        ("elu", {"zero": 0.5}),
        ("elu", {"one": 2.0}),
    ],
    ids=lambda value: "".join(value),
)
def test_constants_of_activations(activation: str, constants: dict[str, float], kind: str):
    g = Graph()
    result = ACTIVATIONS[activation](g, anchor(g, kind), **constants)
    assert_refused(g, result, f"{kind}_{activation}", f"constants of {activation} are not those")


@pytest.mark.parametrize("kind", ["conv2d", "dense"])
def test_types(kind: str):
    g = Graph(f16)
    result = g.op(nn.ReluOp, anchor(g, kind))
    assert_refused(g, result, f"{kind}_relu", "element type f16")


def layer_norm(
    g: Graph,
    shape: tuple[int, ...] = (2, 5, C),
    axis: int = -1,
    power: float = 2.0,
    gamma: tuple[int, ...] = (C,),
    beta: tuple[int, ...] = (C,),
) -> SSAValue:
    x = g.argument(*shape)
    mean = g.op(reduce.MeanOp, x, axis=[axis], keepdims=True)
    centred = g.op(e.SubtractOp, x, mean)
    square = g.op(e.PowerOp, centred, g.number(power))
    variance = g.op(reduce.MeanOp, square, axis=[axis], keepdims=True)
    root = g.op(e.SqrtOp, g.op(e.AddOp, variance, g.number(1e-5)))
    scaled = g.op(e.MultiplyOp, g.op(e.DivideOp, centred, root), g.ones(*gamma))
    return g.op(e.AddOp, scaled, g.ones(*beta))


def shuffle(
    g: Graph,
    rows: tuple[int, ...] = (1, 2, 4, 6, 6),
    axes: tuple[int, ...] = (0, 2, 1, 3, 4),
    result: tuple[int, ...] = (1, 8, 6, 6),
) -> SSAValue:
    split = g.op(transform.ReshapeOp, g.argument(1, 8, 6, 6), newshape=rows)
    swapped = g.op(transform.TransposeOp, split, axes=axes)
    return g.op(transform.ReshapeOp, swapped, newshape=result)


WRITTEN_OUT = [("layer_norm", layer_norm), ("channel_shuffle", shuffle)]


@pytest.mark.parametrize(("row", "make"), WRITTEN_OUT)
def test_written_out_rows_are_found(row: str, make: Callable[..., SSAValue]):
    g = Graph()
    module = ModuleOp([g.function(make(g))])
    reasons(module)
    assert composites(module) == [row]


@pytest.mark.parametrize(
    ("row", "make", "changed", "reason"),
    [
        ("layer_norm", layer_norm, {"axis": 1}, "the axes, the power or the shapes"),
        ("layer_norm", layer_norm, {"power": 3.0}, "the axes, the power or the shapes"),
        ("layer_norm", layer_norm, {"gamma": (5, C)}, "the axes, the power or the shapes"),
        ("layer_norm", layer_norm, {"beta": ()}, "the axes, the power or the shapes"),
        ("layer_norm", layer_norm, {"shape": (C,)}, "rank 1 (oneDNN normalises ranks 2 to 5)"),
        ("channel_shuffle", shuffle, {"axes": (0, 2, 1, 4, 3)}, "make it a shuffle of channels"),
        ("channel_shuffle", shuffle, {"rows": (1, 4, 2, 3, 12)}, "make it a shuffle of channels"),
        ("channel_shuffle", shuffle, {"result": (1, 8, 36)}, "make it a shuffle of channels"),
    ],
    ids=lambda value: "".join(value) if isinstance(value, dict) else "",
)
def test_rows_that_are_written_out(
    row: str, make: Callable[..., SSAValue], changed: dict[str, object], reason: str
):
    g = Graph()
    assert_refused(g, make(g, **changed), row, reason)


WRITTEN_OUT = [("layer_norm", layer_norm), ("channel_shuffle", shuffle)]


@pytest.mark.parametrize(("row", "make"), WRITTEN_OUT)
def test_types_of_rows_that_are_written_out(row: str, make: Callable[..., SSAValue]):
    g = Graph(f16)
    assert_refused(g, make(g), row, "element type f16")
