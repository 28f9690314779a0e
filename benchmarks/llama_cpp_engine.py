"""Bundled decoders in llama.cpp, with the same weights: an engine of `decoding.py`.

It needs `pip install llama-cpp-python gguf`, which builds llama.cpp for this machine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, numpy_helper

from byoc_mlir.testing.networks import DecoderSizes

Array = np.ndarray[Any, np.dtype[Any]]

_BLOCK = 32
"""Elements of a block of `Q4_0`; it has a scale in f16, and 16 bytes of codes."""
_EPSILON = 1e-6
_PRODUCTS = {
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}
"""Matmuls of a layer, with their names in llama.cpp."""


def llama_cpp(
    model: ModelProto, sizes: DecoderSizes, threads: int
) -> Callable[[Sequence[int], int], Array]:
    """Returns a function from new tokens and the number of earlier ones to the logits of the last
    token, in llama.cpp.

    Args:
        model: a decoder of the family `llama`, with weights of 4 bits in blocks of 32.
    """
    from llama_cpp import Llama  # pyright: ignore

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "decoder.gguf")
        _write(path, model, sizes)
        engine: Any = Llama(
            str(path),
            n_ctx=sizes.capacity,
            n_threads=threads,
            n_threads_batch=threads,
            verbose=False,
        )

    def step(tokens: Sequence[int], count: int) -> Array:
        engine.n_tokens = count
        engine.eval(tokens)
        return np.ctypeslib.as_array(engine._ctx.get_logits_ith(-1), (sizes.vocabulary,))

    return step


def _write(path: Path, model: ModelProto, sizes: DecoderSizes) -> None:
    from gguf import GGMLQuantizationType, GGUFWriter  # pyright: ignore

    writer: Any = GGUFWriter(path, "llama")
    writer.add_context_length(sizes.capacity)
    writer.add_embedding_length(sizes.width)
    writer.add_block_count(sizes.layers)
    writer.add_feed_forward_length(sizes.inner)
    writer.add_head_count(sizes.heads)
    writer.add_head_count_kv(sizes.shared_heads)
    writer.add_rope_dimension_count(sizes.head_size)
    writer.add_layer_norm_rms_eps(_EPSILON)
    writer.add_vocab_size(sizes.vocabulary)
    writer.add_tokenizer_model("no_vocab")
    for name, array in _tensors(model, sizes):
        kind: Any = GGMLQuantizationType.Q4_0 if array.dtype == np.uint8 else None
        writer.add_tensor(name, array, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(model: ModelProto, sizes: DecoderSizes) -> Iterator[tuple[str, Array]]:
    """Yields the weights by their names in llama.cpp; those of matmuls as bytes."""
    given = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    yield "token_embd.weight", given["embed_tokens"]
    yield "output.weight", _blocks(given, "lm_head")
    norm = given["layernorm.weight"]
    for layer in range(sizes.layers):
        of = f"model.layers.{layer}"
        yield f"blk.{layer}.attn_norm.weight", norm
        yield f"blk.{layer}.ffn_norm.weight", given[f"{of}.layernorm.weight"]
        norm = given[f"{of}.layernorm.weight_1"]
        for name, its in _PRODUCTS.items():
            blocks = _blocks(given, f"{of}.{name}")
            yield f"blk.{layer}.{its}.weight", _paired(blocks, sizes) if name[0] in "qk" else blocks
    yield "output_norm.weight", norm


def _blocks(given: Mapping[str, Array], name: str) -> Array:
    """Returns a weight as bytes `[features, blocks * 18]`: the scale of each block, then its codes,
    of which one byte has those of the elements `i` and `i + 16`.
    """
    codes, scales = given[f"{name}.qweight"], given[f"{name}.scales"]
    elements = np.stack((codes & 15, codes >> 4), -1).reshape(*scales.shape, _BLOCK)
    first, last = np.split(elements, 2, axis=-1)
    halves = scales.astype(np.float16)[..., None].view(np.uint8)
    return np.concatenate((halves, first | last << 4), -1).reshape(len(codes), -1)


def _paired(rows: Array, sizes: DecoderSizes) -> Array:
    """Returns the rows of queries or keys with the two elements of each rotation side by side."""
    halves = rows.reshape(-1, 2, sizes.head_size // 2, rows.shape[-1])
    return halves.swapaxes(1, 2).reshape(rows.shape)
