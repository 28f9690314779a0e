"""Damaged `.mlir` text: tokens deleted, swapped, doubled, numbers changed."""

from __future__ import annotations

import re
from random import Random

from byoc_mlir.errors import ByocError
from byoc_mlir.frontend import import_model

_TOKEN = re.compile(r'"[^"\n]*"|[%@#!]?[\w.$]+|->|\S')
_NUMBER = re.compile(r"-?\d+")
_NUMBERS = ("0", "1", "-1", "7", "4294967296", "-9223372036854775808", "1e400", "0x", "nan")
_STRAY = ('"', "<", ">", "(", ")", "{", "}", "%", "@", "!", "tensor<?xf32>", "i1", "\x00", "é")


def mutated_text(rng: Random, model: bytes) -> bytes | None:
    """Returns the model as text with some tokens changed; `None` if it cannot be imported."""
    try:
        text = str(import_model(model).module)
    except ByocError:
        return None
    except Exception:  # a defect, which a case without mutation shows
        return None
    for _ in range(rng.choice([1, 1, 2, 4])):
        text = _mutated(rng, text)
    return text.encode()


def _mutated(rng: Random, text: str) -> str:
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        return text
    one, two = (
        sorted(rng.sample(tokens, 2), key=lambda t: t.start())
        if len(tokens) > 1
        else [tokens[0]] * 2
    )
    kind = rng.randrange(7)
    if kind == 0:
        return text[: one.start()] + text[one.end() :]
    if kind == 1:
        middle = text[one.end() : two.start()]
        return text[: one.start()] + two[0] + middle + one[0] + text[two.end() :]
    if kind == 2:
        return text[: one.end()] + " " + one[0] + text[one.end() :]
    if kind == 3:
        return text[: one.start()] + rng.choice(_STRAY) + text[one.start() :]
    if kind == 4:
        return text[: one.start()] + text[one.start() : two.end()] * 2 + text[two.end() :]
    if kind == 5 and rng.random() < 0.3:
        return text[: one.start()]
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return text
    chosen = rng.choice(numbers)
    return text[: chosen.start()] + rng.choice(_NUMBERS) + text[chosen.end() :]
