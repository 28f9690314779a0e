"""Random nodes of ONNX's own Attention, against ONNX's reference evaluator."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from test_onnx_attention import attention, by_onnx
from xdsl.dialects import func

from byoc_mlir.dialects.relay.evaluate import evaluate
from byoc_mlir.frontend import import_model
from byoc_mlir.testing.reference import assert_agrees


@st.composite
def nodes(draw: Any) -> tuple[Any, dict[str, Any]]:
    """Draws a model of one node, and its inputs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def size(most: int, least: int = 1) -> int:
        return draw(st.integers(least, most))

    def one_of(*choices: Any) -> Any:
        return draw(st.sampled_from(choices))

    def floats(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    kind = one_of("plain", "past", "filled")
    batch, new, keys, shared, group = size(3), size(4), size(6), size(2), size(3)
    head, value_head, past = one_of(1, 2, 4), one_of(1, 3, 4), size(4) if kind == "past" else 0
    heads, total, opset = shared * group, keys + past, one_of(23, 24, 25)
    if kind == "filled":
        opset = max(opset, 24)
    shapes = {
        "q": (batch, heads, new, head),
        "k": (batch, shared, keys, head),
        "v": (batch, shared, keys, value_head),
    }
    attributes: dict[str, Any] = {}
    if one_of(True, False):
        shapes = {name: (b, n, h * s) for name, (b, h, n, s) in shapes.items()}
        attributes |= {"q_num_heads": heads, "kv_num_heads": shared}
    inputs = {name: floats(*shape) for name, shape in shapes.items()}
    mask_shape = one_of((new, total), (one_of(1, batch), one_of(1, heads), new, total))
    mask = one_of(None, floats(*mask_shape), rng.random(mask_shape) < 0.7)
    if mask is not None:
        inputs["mask"] = mask
    if kind == "past":
        inputs["past_k"] = floats(batch, shared, past, head)
        inputs["past_v"] = floats(batch, shared, past, value_head)
    if kind == "filled":
        inputs["filled"] = rng.integers(0, keys + 1, batch)
    options = {"is_causal": 1, "scale": 0.3, "softcap": 2.0}
    attributes |= {name: value for name, value in options.items() if one_of(True, False)}
    outputs = ("y", "present_k", "present_v") if kind == "past" else ("y",)
    return attention(inputs, outputs, opset, **attributes), inputs


@settings(max_examples=30)
@given(nodes())
def test_as_the_reference_evaluator(node: tuple[Any, dict[str, Any]]) -> None:
    model, inputs = node
    imported = import_model(model)
    main = next(op for op in imported.module.ops if isinstance(op, func.FuncOp))
    results = evaluate(main, [inputs[info.name] for info in imported.inputs])
    names = [info.name for info in imported.outputs]
    assert_agrees(dict(zip(names, results, strict=True)), by_onnx(model, inputs), 1e-4)
