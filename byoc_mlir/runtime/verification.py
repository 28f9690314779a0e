"""How far a compiled model is from what it should compute, and where that begins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from byoc_mlir.comparison import Difference
from byoc_mlir.names import printable
from byoc_mlir.runtime.profile import WIDTH

MOST_ROWS = 12
"""Rows of a kind in the text."""


@dataclass(frozen=True)
class Asked:
    """What `Executable.verify` is asked for; it documents them."""

    inputs: Mapping[str, Any]
    model: Any = None
    against: str | None = None
    rtol: float | None = None
    atol: float | None = None
    nodes: bool = False


@dataclass(frozen=True)
class Compared:
    """One tensor of the model, and how far it is from what it should be."""

    tensor: str
    node: str
    """The ONNX node that gives it."""
    op_type: str
    placement: str
    """Where that node runs: a backend's name, or `host`."""
    region: str
    difference: Difference
    agrees: bool

    def __str__(self) -> str:
        found = self.difference
        name = printable(f"{self.node or self.tensor} ({self.op_type or 'input'})")
        if found.problem:
            return _short(f"DIFFERS  {name}: {found.problem}", WIDTH)
        mark = "" if self.agrees else "DIFFERS"
        numbers = f"{mark:<8}{found.largest:9.2e} {found.mean:9.2e} {found.scale:9.2e}  "
        more = (f"at {list(found.at)}" if found.largest else "", self.region or self.placement)
        line = f"{numbers}{_short(name, WIDTH - len(numbers))}"
        for text in filter(None, more):
            line = f"{line} {text}" if len(line) + len(text) < WIDTH else line
        return line


@dataclass(frozen=True)
class FailingPart:
    """The smallest part of the model that was found to differ alone."""

    nodes: tuple[str, ...]
    op_types: tuple[str, ...]
    placement: str
    """Where it runs: a backend's name, or `host`."""
    region: str
    composites: tuple[str, ...]
    """The backend's patterns that its nodes are in."""
    is_on_host: bool
    """Whether it was compiled without backends, as all of it is on the host."""
    tensor: str
    """What differs."""
    difference: Difference
    model: bytes
    """It, as an ONNX model of its own."""
    inputs: Mapping[str, npt.NDArray[Any]]
    expected: Mapping[str, npt.NDArray[Any]]

    def __str__(self) -> str:
        nodes = ", ".join(
            f"{name} ({op})" for name, op in zip(self.nodes, self.op_types, strict=True)
        )
        if self.placement in ("folded", "removed"):
            return f"{nodes}, {self.placement} by the compiler"
        where = f" in region {self.region}" if self.region else ""
        patterns = f", as {', '.join(self.composites)}" if self.composites else ""
        return f"{nodes} on {self.placement}{where}{patterns}"

    def save(self, folder: str | Path) -> tuple[Path, Path]:
        """Writes `part.onnx`, `part.npz` with its inputs, and `part-expected.npz`.

        Returns:
            The paths of the first two; `byoc verify part.onnx --inputs part.npz` reads them.
        """
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        model, inputs = root / "part.onnx", root / "part.npz"
        model.write_bytes(self.model)
        np.savez(inputs, allow_pickle=False, **self.inputs)
        np.savez(root / "part-expected.npz", allow_pickle=False, **self.expected)
        return model, inputs


@dataclass(frozen=True)
class Verification:
    """What came of comparing a compiled model with an oracle.

    `str()` gives a text of 80 columns.
    """

    against: str
    """The oracle."""
    outputs: tuple[Compared, ...]
    boundaries: tuple[Compared, ...] = ()
    """What crosses from one region to another, where an output differs."""
    nodes: tuple[Compared, ...] = ()
    """What each node gives in the first region that differs, compiled alone from the region's
    right inputs; of a model that agrees, what all nodes give, if that was asked for."""
    part: FailingPart | None = None
    note: str = ""
    """What else there is to say."""

    @property
    def agrees(self) -> bool:
        """Whether no output differs by more than is accepted."""
        return all(one.agrees for one in self.outputs)

    def to_json(self) -> str:
        """All as a JSON document, without the arrays."""
        part = self.part
        document = {
            "agrees": self.agrees,
            "against": self.against,
            **{
                name: [_row(one) for one in rows]
                for name, rows in (
                    ("outputs", self.outputs),
                    ("boundaries", self.boundaries),
                    ("nodes", self.nodes),
                )
            },
            "part": None if part is None else _part(part),
            "note": self.note,
        }
        return json.dumps(document, indent=2)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        decision = "agrees with" if self.agrees else "DIFFERS from"
        yield f"the model {decision} {self.against}"
        inputs = "the model's inputs" if self.agrees else "the region's right inputs"
        for title, rows in (
            ("outputs", self.outputs),
            ("between regions", self.boundaries),
            (f"nodes, from {inputs}", self.nodes),
        ):
            if rows:
                yield from ("", f"{'':8}{'largest':>9} {'mean':>9} {'magnitude':>9}  {title}")
                yield from _shown(rows)
        if self.part is not None:
            yield from ("", "the smallest part that differs:", *_wrapped(str(self.part)))
        if self.note:
            yield from ("", *_wrapped(self.note))


Kind: TypeAlias = Literal["pattern", "pass", "backend"]


@dataclass(frozen=True)
class Bisection:
    """What has to be left out for a model to be right."""

    verification: Verification
    kind: Kind | None = None
    """Of what is named; `None` if nothing makes the difference go away."""
    names: tuple[str, ...] = ()
    """As few as do it together: nearly always one."""
    tried: int = 0
    """How often the model, or its smallest part that differs, was compiled."""

    def to_json(self) -> str:
        """All as a JSON document, without the arrays."""
        found = {"kind": self.kind, "names": self.names, "tried": self.tried}
        verification = json.loads(self.verification.to_json())
        return json.dumps({**found, "verification": verification}, indent=2)

    def __str__(self) -> str:
        return f"{self.verification}\n\n{self._verdict()}"

    def _verdict(self) -> str:
        if self.verification.agrees:
            return "there is nothing to look for"
        if self.kind is None:
            return "\n".join(
                _wrapped(
                    f"the difference stays whatever is left out ({_tries(self.tried)}): it is in"
                    " the import of the node, or in what no program can be without"
                )
            )
        named = " and ".join(f"'{name}'" for name in self.names)
        return f"the difference goes away without the {self.kind} {named}: {_tries(self.tried)}"


def _shown(rows: Sequence[Compared]) -> Iterator[str]:
    """A few rows as text: those that differ, and the largest differences of the others."""
    order = sorted(range(len(rows)), key=lambda at: (rows[at].agrees, -_weight(rows[at])))
    kept = set(order[:MOST_ROWS])
    yield from (str(row) for at, row in enumerate(rows) if at in kept)
    left = [row for at, row in enumerate(rows) if at not in kept]
    if left:
        wrong = sum(not row.agrees for row in left)
        yield f"{'':8}and {len(left)} more, {wrong} of which differ"


def _weight(row: Compared) -> float:
    return row.difference.relative if row.agrees else 0.0


def _row(one: Compared) -> dict[str, object]:
    return {**asdict(one), "difference": numbers(one.difference)}


def _part(part: FailingPart) -> dict[str, object]:
    return {
        "nodes": part.nodes,
        "op_types": part.op_types,
        "placement": part.placement,
        "region": part.region,
        "composites": part.composites,
        "tensor": part.tensor,
        "difference": numbers(part.difference),
    }


def numbers(found: Difference) -> dict[str, object]:
    """A difference for JSON, which has neither infinities nor not-a-numbers: those are texts."""
    return {
        name: value if not isinstance(value, float) or np.isfinite(value) else str(value)
        for name, value in asdict(found).items()
    }


def _tries(count: int) -> str:
    return f"{count} {'try' if count == 1 else 'tries'}"


def _short(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _wrapped(text: str) -> Sequence[str]:
    return wrap(printable(text), WIDTH, initial_indent="  ", subsequent_indent="  ")
