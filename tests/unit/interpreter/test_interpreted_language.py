"""Interpreter's ops of language models, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import onnx
import pytest
from agreement import check_node, decision, floats, integers, run_interpreted
from helpers.models import MICROSOFT, node_model

from byoc_mlir.interpreter.tier_ops import unknown
from byoc_mlir.tensors import Array
from byoc_mlir.testing.networks import decoder
from byoc_mlir.testing.reference import assert_agrees, run_onnxruntime

RNG = np.random.default_rng(0)


def _bytes(*shape: int) -> Array:
    return RNG.integers(0, 256, shape, np.uint8)


def _weights(
    units: int, width: int, block: int, bits: int, zeros: str
) -> tuple[Array, Array, Array | None]:
    """Returns codes, scales and zero points, which are `bytes`, `floats` or `none`."""
    blocks = -(-width // block)
    points = {
        "bytes": _bytes(units, -(-blocks * bits // 8)),
        "floats": RNG.uniform(0, 2**bits - 1, (units, blocks)).astype(np.float32),
    }
    scales = RNG.uniform(0.01, 0.1, (units, blocks)).astype(np.float32)
    return _bytes(units, blocks, block * bits // 8), scales, points.get(zeros)


@pytest.mark.parametrize("zeros", ["none", "bytes", "floats"])
@pytest.mark.parametrize(
    ("units", "width", "block", "bits"),
    [(5, 32, 32, 4), (300, 80, 16, 4), (129, 50, 32, 4), (7, 70, 16, 2), (128, 33, 32, 4)],
)
def test_weights_in_blocks(units: int, width: int, block: int, bits: int, zeros: str) -> None:
    sizes = {"K": width, "N": units, "block_size": block, "bits": bits}
    for shape in ((1, width), (2, 3, width), (0, width)):
        data = floats(*shape)
        check_node(
            "MatMulNBits",
            *(data, *_weights(units, width, block, bits, zeros)),
            domain=MICROSOFT,
            **sizes,
        )


def test_data_in_bytes_are_not_asked_for() -> None:
    """Checks that `accuracy_level=4`, which allows data in int8, returns what f32 returns."""
    weights = _weights(40, 64, 32, 4, "none")
    sizes: dict[str, Any] = {"K": 64, "N": 40, "block_size": 32, "domain": MICROSOFT}
    operands = [floats(3, 64), *weights]
    plain = run_interpreted(*node_model("MatMulNBits", operands, **sizes))
    rounded = run_interpreted(*node_model("MatMulNBits", operands, accuracy_level=4, **sizes))
    np.testing.assert_array_equal(plain["y0"], rounded["y0"])


def test_groups_in_order() -> None:
    groups = np.arange(64, dtype=np.int32) // 32
    operands = [floats(3, 64), *_weights(8, 64, 32, 4, "none"), groups]
    sizes: dict[str, Any] = {"K": 64, "N": 8, "block_size": 32, "domain": MICROSOFT}
    check_node("MatMulNBits", *operands, **sizes)
    model, feeds = node_model("MatMulNBits", [*operands[:-1], groups[::-1].copy()], **sizes)
    assert decision(model, feeds) == "refused"


@pytest.mark.parametrize("zeros", ["none", "bytes"])
@pytest.mark.parametrize(("width", "block", "bits"), [(64, 32, 4), (48, 16, 4), (64, 32, 8)])
def test_rows_of_a_table_in_blocks(width: int, block: int, bits: int, zeros: str) -> None:
    codes, scales, points = _weights(9, width, block, bits, zeros)
    for indices in (integers(3), integers(8, 0, 3, 3).reshape(2, 2), integers()):
        check_node(
            "GatherBlockQuantized",
            *(codes.reshape(9, -1), indices, scales, points),
            domain=MICROSOFT,
            block_size=block,
            bits=bits,
        )


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 1, 7), (2, 0, 3)])
def test_simplified_layer_normalization(shape: tuple[int, ...]) -> None:
    scale = floats(shape[-1], seed=1)
    check_node("SimplifiedLayerNormalization", floats(*shape), scale, axis=-1, epsilon=1e-3)


def test_normalised_over_several_axes() -> None:
    x, scale = floats(2, 3, 4), floats(3, 4, seed=1)
    check_node("SimplifiedLayerNormalization", x, scale, axis=1)
    check_node("RMSNormalization", x, scale, axis=1, opset=23)


CACHE = [floats(1, 2, 6, 16, seed=place) for place in range(2)]


def _attention(new: int, total: int, past: Sequence[Array | None], **attributes: Any) -> Any:
    """Returns a model of attention to `total` tokens, four heads to two shared ones, and feeds."""
    operands = [
        *(floats(1, new, heads * 16, seed=heads) for heads in (4, 2, 2)),
        *(*past, np.array([total - 1], np.int32), np.array(total, np.int32)),
        *(floats(9, 8, seed=place) for place in range(2)),
    ]
    sizes = {"num_heads": 4, "kv_num_heads": 2, "do_rotary": 1}
    return node_model(
        "GroupQueryAttention", operands, domain=MICROSOFT, outputs=3, **sizes, **attributes
    )


@pytest.mark.parametrize(
    ("new", "total", "past"),
    [(3, 3, [None, None]), (3, 3, CACHE), (1, 4, CACHE), (2, 5, CACHE), (2, 8, CACHE)],
    ids=["prompt", "prompt in a cache", "token", "tokens", "tokens in a cache that grows"],
)
def test_attention_in_a_cache(new: int, total: int, past: Sequence[Array | None]) -> None:
    model, feeds = _attention(new, total, past)
    found, want = run_interpreted(model, feeds), run_onnxruntime(model, feeds)
    np.testing.assert_allclose(found["y0"], want["y0"], rtol=1e-5, atol=1e-5)
    for name in ("y1", "y2"):  # what is behind the last token is left open
        assert found[name].shape == want[name].shape
        filled = (slice(None), slice(None), slice(total))
        np.testing.assert_allclose(found[name][filled], want[name][filled], rtol=1e-5, atol=1e-5)


BLIND = np.tri(3, 9, 5, np.bool_) & (np.arange(3) != 1)[:, None]
"""A mask with which the second of three queries sees no key."""


@pytest.mark.parametrize("mask", [None, BLIND, floats(4, 3, 9)], ids=["none", "blind", "addend"])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("opset", [23, 24])
def test_standard_attention_behind_a_cache(mask: Array | None, is_causal: int, opset: int) -> None:
    operands = [floats(1, 3, heads * 16, seed=heads) for heads in (4, 2, 2)]
    check_node(
        "Attention",
        *(*operands, mask, *CACHE),
        opset=opset,
        outputs=3,
        q_num_heads=4,
        kv_num_heads=2,
        is_causal=is_causal,
        softcap=2.0,
    )


def test_masks_of_fewer_keys_are_refused() -> None:
    operands = [*(floats(1, 2, 3, 16, seed=place) for place in range(3)), floats(3, 2)]
    model, feeds = node_model("Attention", operands, opset=24)
    assert not unknown(model)
    assert decision(model, feeds) == "refused"


@pytest.mark.parametrize("interleaved", [0, 1])
def test_standard_rotary_embeddings(interleaved: int) -> None:
    angles, positions = [floats(9, 4, seed=place) for place in range(2)], integers(3, 8, 0)[None]
    of_tokens = [each[positions] for each in angles]
    sizes: dict[str, Any] = {"opset": 23, "interleaved": interleaved}
    check_node("RotaryEmbedding", floats(1, 2, 3, 8), *angles, positions, **sizes)
    check_node("RotaryEmbedding", floats(1, 3, 16), *of_tokens, num_heads=2, **sizes)
    check_node("RotaryEmbedding", floats(1, 2, 3, 10), *of_tokens, rotary_embedding_dim=8, **sizes)


def test_arguments_are_not_written() -> None:
    model, feeds = _attention(2, 5, CACHE)
    before = {name: array.copy() for name, array in feeds.items()}
    run_interpreted(model, feeds)
    for name, array in feeds.items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize(
    ("new", "total", "past", "last"),
    [(3, 2, CACHE, 1), (2, 5, CACHE, 5), (2, 5, CACHE, 0), (2, 9, CACHE, 8), (1, 4, None, 3)],
    ids=["fewer in all", "behind all", "before all", "behind a gap", "behind nothing"],
)
def test_tokens_that_do_not_follow_are_refused(
    new: int, total: int, past: Sequence[Array] | None, last: int
) -> None:
    model, feeds = _attention(new, total, past or [None, None])
    feeds["x5"] = np.array([last], np.int32)
    assert decision(model, feeds) == "refused"


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"qk_output": 1}, "qk_output=1"),
        ({"kv_cache_bit_width": 4}, "kv_cache_bit_width=4"),
        ({"causal": 0}, "causal=0"),
        ({"k_quant_type": "PER_TENSOR"}, "k_quant_type=PER_TENSOR"),
    ],
)
def test_other_forms_of_attention_are_refused(attributes: dict[str, Any], reason: str) -> None:
    model, _ = _attention(3, 3, CACHE, **attributes)
    assert reason in unknown(model)


def test_positions_that_are_given_are_refused() -> None:
    model, _ = _attention(3, 3, CACHE)
    model.graph.input.append(onnx.helper.make_tensor_value_info("p", onnx.TensorProto.INT64, None))
    model.graph.node[0].input.append("p")
    assert "operand 9" in unknown(model)


@pytest.mark.parametrize("family", ["llama", "qwen"])
def test_decoders(family: Literal["llama", "qwen"]) -> None:
    model = decoder(family=family, bits=4)
    assert not unknown(model)
    caches = {
        info.name: np.zeros((1, 2, 80, 16), np.float32)
        for info in model.graph.input
        if info.name.startswith("past")
    }
    past = 0
    for tokens in ([3, 1, 4, 1, 5], [9], [2]):
        total = past + len(tokens)
        feeds = {
            "input_ids": np.array([tokens]),
            "seqlens_k": np.array([total - 1], np.int32),
            "total_sequence_length": np.array(total, np.int32),
            **({} if family == "llama" else {"position_ids": np.arange(past, total)[None]}),
            **caches,
        }
        found, want = run_interpreted(model, feeds), run_onnxruntime(model, feeds)
        assert_agrees({"y": found["logits"]}, {"y": want["logits"]})
        caches = {name: found[name.replace("past_key_values", "present")] for name in caches}
        past = total
