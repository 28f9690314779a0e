"""Small network that reads handwritten digits, and pictures that it was not trained on.

`tools/train_digits.py` trains it and names the data set. Its accuracy on `unseen()` is 99.1 %.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from byoc_mlir.tensors import Array

_FOLDER = Path(__file__).parent

MODEL = _FOLDER / "digits.onnx"
"""Path of the network: `picture f32[1, 1, 8, 8]`, from 0 to 1, to `probabilities f32[1, 10]`."""

LARGEST = 16
"""Value of a pixel full of ink."""

_SHADES = " ░▒▓█"


def unseen() -> tuple[Array, Array]:
    """Returns pictures `u8[450, 8, 8]`, pixels from 0 to 16, and their digits `u8[450]`."""
    with np.load(_FOLDER / "unseen.npz") as stored:
        return stored["pictures"], stored["labels"]


def as_input(picture: Array) -> Array:
    """Returns a picture `u8[8, 8]` as the network's input, `f32[1, 1, 8, 8]`."""
    return (picture.astype(np.float32) / LARGEST)[None, None]


def drawn(picture: Array) -> str:
    """Returns a picture `u8[8, 8]` as text, two characters a pixel."""
    shades = np.array(list(_SHADES))[picture.astype(np.int64) * (len(_SHADES) - 1) // LARGEST]
    return "\n".join("".join(row) for row in np.repeat(shades, 2, axis=1))
