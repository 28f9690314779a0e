"""Results of a verification: differences between a compiled model and an oracle, and their
origin.
"""

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
"""Maximum number of rows of a kind in the text."""


@dataclass(frozen=True)
class Asked:
    """Arguments of `Executable.verify`, which documents them."""

    inputs: Mapping[str, Any]
    model: Any = None
    against: str | None = None
    rtol: float | None = None
    atol: float | None = None
    nodes: bool = False


@dataclass(frozen=True)
class Compared:
    """Tensor of the model with its difference from the expected value."""

    tensor: str
    node: str
    """ONNX node that computes it."""
    op_type: str
    placement: str
    """Placement of the node: a backend's name, or `host`."""
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
    """Smallest part of the model that was found to differ when compiled separately."""

    nodes: tuple[str, ...]
    op_types: tuple[str, ...]
    placement: str
    """Placement of the part: a backend's name, or `host`."""
    region: str
    composites: tuple[str, ...]
    """Patterns of the backend that matched its nodes."""
    is_on_host: bool
    """True if it was compiled without backends, because all of it is on the host."""
    tensor: str
    """Tensor that differs."""
    difference: Difference
    model: bytes
    """Part as a separate ONNX model."""
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
            The paths of `part.onnx` and `part.npz`; `byoc verify part.onnx --inputs part.npz` reads
            them.
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
    """Result of the comparison of a compiled model with an oracle.

    `str()` returns a text of 80 columns.
    """

    against: str
    """Name of the oracle."""
    outputs: tuple[Compared, ...]
    boundaries: tuple[Compared, ...] = ()
    """Tensors between regions, if an output differs."""
    nodes: tuple[Compared, ...] = ()
    """Results of the nodes of the first region that differs, each compiled on its own with the
    region's correct inputs. For a model that agrees, the results of all nodes, if requested."""
    part: FailingPart | None = None
    note: str = ""
    """Additional remark."""

    @property
    def agrees(self) -> bool:
        """True if no output differs by more than the tolerance."""
        return all(one.agrees for one in self.outputs)

    def to_json(self) -> str:
        """Returns all fields as a JSON document, without the arrays."""
        part = self.part
        document = {
            "agrees": self.agrees,
            "against": self.against,
            "outputs": list(map(_row, self.outputs)),
            "boundaries": list(map(_row, self.boundaries)),
            "nodes": list(map(_row, self.nodes)),
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
    """Result of a bisection: the names whose disabling makes a model correct."""

    verification: Verification
    kind: Kind | None = None
    """Kind of the names; None if no set of names removes the difference."""
    names: tuple[str, ...] = ()
    """Smallest set of names that removes the difference, nearly always one."""
    tried: int = 0
    """Number of compilations of the model, or of its smallest part that differs."""

    def to_json(self) -> str:
        """Returns all fields as a JSON document, without the arrays."""
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
    """Yields some rows as text: rows that differ, and the largest differences of the remaining
    rows.
    """
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
    """Returns a difference for JSON; infinities and NaNs, which JSON lacks, are converted to
    text.
    """
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
