"""Changes of `.mlir` text that follow its grammar: most results parse, and break a later rule."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import TypeAlias

Change: TypeAlias = Callable[[Random, str], str]

_TYPE = re.compile(r"tensor<[^<>]*>")
_OP = re.compile(r"\b(relay|arith|math|tensor|linalg|func|llvm|byoc)\.[\w.]+")
_VALUE = re.compile(r"%[\w.$-]+")
_INTEGER = re.compile(r"(?<![\w.%@#\"x<-])-?\d+(?![\w.x])")
_SIZE = re.compile(r"(?<=[<x])\d+(?=x)")
_ELEMENTS = ("f16", "bf16", "f32", "f64", "i1", "i8", "ui8", "i32", "i64", "ui64", "index")
_ENDS = ("0", "-1", "1", "2147483648", "4294967296", "9223372036854775807", "-9223372036854775808")
_FOREIGN = (
    "llvm.func @system(!llvm.ptr) -> i32\n",
    "func.func private @malloc(i64) -> i64\n",
    "func.func @main() { func.return }\n",
    "func.func @again(%a: tensor<4xf32>) -> tensor<4xf32> { func.return %a : tensor<4xf32> }\n",
    "llvm.mlir.global external @environ() : !llvm.ptr\n",
    "module @inner { }\n",
)


def hostile_text(rng: Random, text: str) -> str:
    """Returns the text after one to three changes."""
    for _ in range(rng.choice([1, 1, 2, 3])):
        text = rng.choice(_CHANGES)(rng, text)
    return text


def _replaced(rng: Random, text: str, pattern: re.Pattern[str], new: str) -> str:
    """Replaces one occurrence of a pattern, or all occurrences of the text that it found."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    one = rng.choice(found)
    if rng.random() < 0.5:
        return re.sub(rf"(?<!\w){re.escape(one[0])}(?!\w)", lambda _: new, text)
    return text[: one.start()] + new + text[one.end() :]


def _op_of_another_kind(rng: Random, text: str) -> str:
    known = sorted({one[0] for one in _OP.finditer(text)})
    others = [*known, "relay.add", "relay.nn.relu", "relay.concatenate", "func.return", "llvm.call"]
    return _replaced(rng, text, _OP, rng.choice(others))


def _another_value(rng: Random, text: str) -> str:
    known = sorted({one[0] for one in _VALUE.finditer(text)})
    return _replaced(rng, text, _VALUE, rng.choice(known)) if known else text


def _another_type(rng: Random, text: str) -> str:
    sizes = "x".join(rng.choice(["0", "1", "2", "3", "4", "?", *_ENDS[3:6]]) for _ in range(3))
    return _replaced(rng, text, _TYPE, f"tensor<{sizes}x{rng.choice(_ELEMENTS)}>")


def _another_element(rng: Random, text: str) -> str:
    old, new = rng.choice(_ELEMENTS), rng.choice(_ELEMENTS)
    return re.sub(rf"(?<=[x<]){old}>", f"{new}>", text)


def _another_size(rng: Random, text: str) -> str:
    return _replaced(rng, text, _SIZE, rng.choice(["0", "1", "5", "1000000", *_ENDS[3:6]]))


def _another_integer(rng: Random, text: str) -> str:
    return _replaced(rng, text, _INTEGER, rng.choice([*_ENDS, "2", "3", "7"]))


def _foreign_op(rng: Random, text: str) -> str:
    foreign = rng.choice(_FOREIGN)
    at = text.find("func.func") if rng.random() < 0.7 else text.rfind("func.return")
    return text[:at] + foreign + text[at:] if at >= 0 else text + foreign


def _line_moved(rng: Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    ops = [number for number, line in enumerate(lines) if " = " in line]
    if len(ops) < 2:
        return text
    one, two = rng.sample(ops, 2)
    if rng.random() < 0.5:
        lines.insert(two, lines[one])  # defined twice
    else:
        lines[one], lines[two] = lines[two], lines[one]
    return "".join(lines)


_CHANGES: tuple[Change, ...] = (
    *(_op_of_another_kind, _another_value, _another_type, _another_element, _another_size),
    *(_another_integer, _foreign_op, _line_moved),
)
