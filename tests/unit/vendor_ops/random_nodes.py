"""Random nodes of the ops of language models, of small sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from nodes import Arrays
from numpy.typing import NDArray

Draw = Callable[[st.SearchStrategy[Any]], Any]


@dataclass(frozen=True)
class Case:
    """Node and its inputs."""

    op_type: str
    inputs: Arrays
    outputs: tuple[str, ...] = ("y",)
    constants: tuple[str, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    lengths: tuple[int, ...] = ()
    """Number of valid tokens in each entry of the caches `present_k` and `present_v`."""


class Drawn:
    """Generator of sizes, choices, and random values."""

    def __init__(self, draw: Draw):
        self._draw = draw
        self.rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def size(self, most: int, least: int = 1) -> int:
        return self._draw(st.integers(least, most))

    def one_of(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def maybe(self, made: Callable[[], Any]) -> Any:
        return made() if self._draw(st.booleans()) else None

    def floats(self, *shape: int) -> NDArray[np.float32]:
        return self.rng.standard_normal(shape).astype(np.float32)

    def numbers(self, least: int, most: int, *shape: int) -> NDArray[np.int32]:
        """Returns integers from `least` to `most`."""
        return self.rng.integers(least, most + 1, shape).astype(np.int32)

    def some(self, **attributes: Any) -> dict[str, Any]:
        """Draws some of the attributes."""
        return {name: value for name, value in attributes.items() if self._draw(st.booleans())}


@st.composite
def rotary_embeddings(draw: Draw) -> Case:
    drawn = Drawn(draw)
    batch, length, heads = drawn.size(3), drawn.size(4), drawn.size(3)
    pairs, rest = drawn.one_of(2, 4, 8), drawn.one_of(0, 0, 4)
    size, positions = 2 * pairs + rest, length + drawn.size(4, 0)
    shape = drawn.one_of((batch, length, heads * size), (batch, heads, length, size))
    starts = drawn.numbers(0, positions - length, 1)
    places = drawn.one_of(starts, drawn.numbers(0, positions - 1, batch, length))
    attributes = {"interleaved": drawn.one_of(0, 1)}
    if rest:
        attributes |= {"num_heads": heads, "rotary_embedding_dim": 2 * pairs}
    caches = {name: drawn.floats(positions, pairs) for name in ("c", "s")}
    inputs = {"x": drawn.floats(*shape), "p": places.astype(np.int64), **caches}
    return Case("RotaryEmbedding", inputs, attributes=attributes)


@st.composite
def group_query_attentions(draw: Draw) -> Case:
    """Draws prompts and steps, with a cache that grows or has room for more."""
    drawn = Drawn(draw)
    size, shared = drawn.one_of(8, 16), drawn.size(2)
    heads, batch = shared * drawn.size(3), drawn.size(3)
    is_prompt = drawn.one_of(True, False)
    new = drawn.size(5) if is_prompt else 1 if batch > 1 else drawn.size(3)
    past = 0 if is_prompt else drawn.size(6)
    total = new + past
    capacity = drawn.one_of(past, total, total + drawn.size(3))
    lengths = [total, *(total if is_prompt else drawn.size(total) for _ in range(batch - 1))]
    rotary = size == 16 and drawn.one_of(True, False)
    packed = drawn.one_of(True, False)
    angles = drawn.floats(2, total + 3, size // 2) if rotary else [None, None]
    cache = (batch, shared, capacity, size)
    width = heads + 2 * shared if packed else heads
    bias = drawn.floats(drawn.one_of(1, batch), drawn.one_of(1, heads), new, total)
    inputs: Arrays = {
        "q": drawn.floats(batch, new, width * size),
        "k": None if packed else drawn.floats(batch, new, shared * size),
        "v": None if packed else drawn.floats(batch, new, shared * size),
        "pk": drawn.floats(*cache) if capacity or not is_prompt else None,
        "pv": drawn.floats(*cache) if capacity or not is_prompt else None,
        "lengths": np.array(lengths, np.int32) - 1,
        "total": np.array([total], np.int32),
        "c": angles[0],
        "s": angles[1],
        "p": None,
        "a": drawn.one_of(None, None, bias),
        "sink": drawn.one_of(None, None, drawn.floats(heads)),
    }
    attributes = drawn.some(scale=0.3, softcap=2.0, local_window_size=drawn.size(6))
    attributes |= {"num_heads": heads, "kv_num_heads": shared, "do_rotary": int(rotary)}
    if inputs["sink"] is None:
        attributes |= drawn.some(smooth_softmax=1)
    if rotary:
        attributes |= drawn.some(rotary_interleaved=1)
    names = ("y", "present_k", "present_v")
    return Case("GroupQueryAttention", inputs, names, ("total",), attributes, tuple(lengths))


@st.composite
def multi_head_attentions(draw: Draw) -> Case:
    drawn = Drawn(draw)
    batch, new, heads = drawn.size(3), drawn.size(4), drawn.size(3)
    size, keys = drawn.one_of(1, 2, 4), drawn.size(5)
    kind = drawn.one_of("cross", "self", "turned", "grows", "shared")
    keys = keys if kind in ("cross", "turned") else new
    past = drawn.size(5, 0) if kind in ("grows", "shared") else 0
    total, capacity = keys + past, past + keys + drawn.size(3, 0) if kind == "shared" else past
    value_size = drawn.one_of(size, 3) if kind in ("cross", "self") else size
    turned = kind == "turned"
    masks = [
        drawn.numbers(1, total, batch),
        drawn.numbers(0, 1, batch, total),
        drawn.numbers(0, 1, batch, new, total),
    ]
    has_bias = not turned and drawn.one_of(True, False)
    has_cache = past > 0 or kind == "shared"
    cache = drawn.floats(2, batch, heads, capacity, size) if has_cache else [None, None]
    shapes = (
        [(batch, heads, keys, size)] * 2
        if turned
        else [
            (batch, keys, heads * size),
            (batch, keys, heads * value_size),
        ]
    )
    bias = drawn.floats(drawn.one_of(1, batch), drawn.one_of(1, heads), new, total)
    beams = drawn.one_of(None, *(n for n in range(1, batch + 1) if batch % n == 0))
    if kind != "shared" or new != 1:
        beams = None
    if beams is not None:  # ONNX Runtime reads other masks as these, and one bias for all
        masks, bias = masks[1:2], bias[:1]
    inputs: dict[str, Any] = {
        "q": drawn.floats(batch, new, heads * size),
        "k": drawn.floats(*shapes[0]),
        "v": drawn.floats(*shapes[1]),
        "b": drawn.floats(heads * (2 * size + value_size)) if has_bias else None,
        "m": drawn.one_of(None, None, *masks),
        "a": drawn.one_of(None, bias),
        "pk": cache[0],
        "pv": cache[1],
    }
    if kind == "shared":
        places = drawn.numbers(0, 0, 1, batch, capacity)  # which are not read
        if beams is not None:
            places = drawn.numbers(0, beams - 1, batch // beams, beams, capacity)
        inputs |= {
            "filled": np.array([past], np.int32),
            "beams": places if beams or new != 1 else None,
        }
    attributes: dict[str, Any] = {"num_heads": heads, **drawn.some(scale=0.3)}
    attributes |= drawn.some(mask_filter_value=-5.0)
    if kind in ("self", "grows", "shared"):
        attributes |= drawn.some(unidirectional=1)
    names = ("y", "present_k", "present_v") if has_cache else ("y",)
    return Case("MultiHeadAttention", inputs, names, (), attributes)


@st.composite
def attentions(draw: Draw) -> Case:
    """Draws attention of `com.microsoft`."""
    drawn = Drawn(draw)
    batch, new, heads, inner = drawn.size(3), drawn.size(4), drawn.size(3), drawn.size(5)
    size, past = drawn.one_of(1, 2, 4), drawn.size(4, 0)
    value_size = size if past else drawn.one_of(size, 3)
    total = new + past
    sizes = [heads * size, heads * size, heads * value_size]
    masks = [
        drawn.numbers(1, total, batch),
        drawn.numbers(0, 1, batch, total),
        drawn.numbers(0, 1, batch, new, total),
    ]
    bias = drawn.floats(drawn.one_of(1, batch), drawn.one_of(1, heads), new, total)
    inputs = {
        "x": drawn.floats(batch, new, inner),
        "w": drawn.floats(inner, sum(sizes)),
        "b": drawn.floats(sum(sizes)),
        "m": drawn.one_of(None, None, *masks),
        "p": drawn.floats(2, batch, heads, past, size) if past else None,
        "a": drawn.one_of(None, bias),
    }
    attributes = drawn.some(scale=0.3, mask_filter_value=-5.0, unidirectional=1)
    attributes["num_heads"] = heads
    if value_size != size:
        attributes["qkv_hidden_sizes"] = sizes
    names = ("y", "present") if past else ("y",)
    return Case("Attention", inputs, names, ("w",), attributes)


@st.composite
def skip_normalizations(draw: Draw) -> Case:
    drawn = Drawn(draw)
    simplified = drawn.one_of(True, False)
    batch, length, width = drawn.size(3), drawn.size(3, 0), drawn.one_of(1, 2, 5, 16, 17)
    shape = drawn.one_of((batch, length, width), (length, width))
    skips = [shape, (length, width), (1, length, width)] if len(shape) == 3 else [shape]
    inputs: dict[str, Any] = {
        "x": drawn.floats(*shape),
        "skip": drawn.floats(*drawn.one_of(*skips)),
        "gamma": drawn.floats(width),
        **({} if simplified else {"beta": drawn.maybe(lambda: drawn.floats(width))}),
        "b": drawn.maybe(lambda: drawn.floats(width)),
    }
    names = drawn.one_of(("y",), ("y", "", "", "sum"))
    name = "SkipSimplifiedLayerNormalization" if simplified else "SkipLayerNormalization"
    return Case(name, inputs, names, attributes=drawn.some(epsilon=1e-3))


@st.composite
def products_of_bits(draw: Draw) -> Case:
    drawn = Drawn(draw)
    bits, block = drawn.one_of(4, 8), drawn.one_of(16, 32, 64)
    units, size = drawn.one_of(1, 2, 7, 16, 17), drawn.size(3 * block)
    blocks = -(-size // block)
    shape = (*drawn.one_of((), (2,), (0,)), drawn.size(3), size)
    codes = drawn.numbers(0, 255, units, blocks, block * bits // 8).astype(np.uint8)
    packed = drawn.numbers(0, 255, units, -(-blocks * bits // 8)).astype(np.uint8)
    inputs = {
        "x": drawn.floats(*shape),
        "w": codes,
        "s": drawn.rng.uniform(0.01, 0.1, (units, blocks)).astype(np.float32),
        "z": drawn.one_of(None, packed, drawn.numbers(0, 15, units, blocks).astype(np.float32)),
        "g": drawn.one_of(None, None, (np.arange(size) // block).astype(np.int32)),
        "b": drawn.maybe(lambda: drawn.floats(units)),
    }
    if inputs["z"] is packed:  # which ONNX Runtime misreads beside `g_idx`
        inputs["g"] = None
    constants = tuple(name for name in "wszg" if inputs[name] is not None)
    attributes = {"K": size, "N": units, "bits": bits, "block_size": block}
    return Case("MatMulNBits", inputs, ("y",), constants, attributes)
