"""Report of the placement of every ONNX node, with the reasons."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from byoc_mlir.names import printable, printable_lines

if TYPE_CHECKING:
    from byoc_mlir.runtime.profile import Profile
    from byoc_mlir.runtime.verification import Verification


@dataclass(frozen=True)
class RegionTimes:
    """Estimated or measured times of a region on its backend and on the host, which determined its
    placement.
    """

    backend: str
    obtained: str
    """Origin of the times: `estimated`, for one thread, or `measured`."""
    backend_milliseconds: float | None = None
    """Milliseconds on the backend, or None if unknown."""
    host_milliseconds: float | None = None

    def __str__(self) -> str:
        places = {self.backend: self.backend_milliseconds, "host": self.host_milliseconds}
        figures = (
            f"{name} {'unknown' if time is None else f'{time:.3f} ms'}"
            for name, time in places.items()
        )
        return f"{self.obtained}: {', '.join(figures)}"


@dataclass(frozen=True)
class ReportRow:
    """Row of an ONNX node."""

    node: str
    op_type: str
    placement: str
    """Name of a backend, `host`, `folded` (computed at compile time) or `removed`."""
    region: str = ""
    composite: str = ""
    reason: str = ""
    """Reason: for the host, why no backend took the node; for `folded` and `removed`, what replaced
    it."""
    precision: str = ""
    """Precision of the node's arithmetic; for `f32` with quantised operands, also the reason."""
    implementation: str = ""
    milliseconds: float | None = None
    inputs: tuple[str, ...] = ()
    """Input tensors; empty if the model is in MLIR."""
    outputs: tuple[str, ...] = ()
    times: RegionTimes | None = None
    """Times of its region, or of its former region if that was moved back to the host."""


@dataclass(frozen=True)
class GuardRow:
    """Condition on sizes that a compile-time decision depends on."""

    relation: str
    """Condition in terms of the model's symbolic dimensions: `seq == past`."""
    node: str
    """ONNX node that requires it; empty if there is none."""

    def __str__(self) -> str:
        return f"{self.relation} ({self.node})" if self.node else self.relation


@dataclass(frozen=True)
class Variant:
    """Import of a model with dynamic shapes, and the programs that are compiled from it."""

    guards: tuple[GuardRow, ...] = ()
    """Conditions on sizes under which it is valid."""
    reason: str = ""
    """Reason why it is valid for a single set of input shapes, if it is."""
    shapes: tuple[str, ...] = ()
    """Sets of input shapes that it is compiled for, `x[2, 8], y[2, 1]`; empty for dynamic
    shapes."""

    def __str__(self) -> str:
        where = self.reason or ", ".join(map(str, self.guards)) or "all sizes"
        if not self.shapes:
            return f"{where}; one program"
        sets = f"{len(self.shapes)} set{'' if len(self.shapes) == 1 else 's'}"
        return f"{where}; compiled for {sets} of input shapes"


@dataclass(frozen=True)
class DeviceTraffic:
    """Copies between the host and a device in one run, and waits for the device.

    Those in the body of a loop count once.
    """

    device: str
    copies_in: int = 0
    """Number of copies to the device."""
    bytes_in: int = 0
    copies_out: int = 0
    bytes_out: int = 0
    waits: int = 0
    constant_bytes: int = 0
    """Bytes of constants, which are copied to the device once, where the program is loaded."""
    resident_inputs: tuple[str, ...] = ()
    """Inputs that stay on the device. A run with an array of the host for one of them copies it,
    which the numbers omit."""

    def __str__(self) -> str:
        into = _counted(self.copies_in, self.bytes_in, "copy in", "copies in")
        out = _counted(self.copies_out, self.bytes_out, "copy out", "copies out")
        waits = f"{self.waits} wait{'' if self.waits == 1 else 's'}"
        line = f"{self.device}: {into}, {out}, {waits}; {self.constant_bytes:,} bytes of constants"
        if not self.resident_inputs:
            return line
        names = printable(", ".join(self.resident_inputs))
        return f"{line}; each run with a host array for {names} copies it in, too"

    def plus(self, other: DeviceTraffic) -> DeviceTraffic:
        """Returns the sum of the traffic of two parts of a model."""
        fields = (name for name in asdict(self) if name != "device")
        return DeviceTraffic(
            self.device, *(getattr(self, name) + getattr(other, name) for name in fields)
        )


def _counted(count: int, size: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several} ({size:,} bytes)"


@dataclass(frozen=True)
class Report:
    """Report with one row for every node of the model, in the model's order.

    `str()` returns a table with one row for each node, without empty columns.
    """

    rows: tuple[ReportRow, ...] = ()
    warnings: tuple[str, ...] = ()
    composites: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of composites by name."""
    multiplications: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of MACs of convolutions and GEMMs in each precision."""
    variants: tuple[Variant, ...] = ()
    """Imports of a model with dynamic shapes; empty for other models."""
    devices: tuple[DeviceTraffic, ...] = ()
    """Copies and waits of a run, by device."""
    compile_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """Seconds of each stage of the compilation."""
    pass_seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    """Seconds of each pass, over all stages."""

    @staticmethod
    def joined(reports: Sequence[Report]) -> Report:
        """Returns the report of a model that consists of the reported parts; its times are the
        first report's.
        """
        composites, multiplications = Counter[str](), Counter[str]()
        devices: dict[str, DeviceTraffic] = {}
        for report in reports:
            composites.update(report.composites)
            multiplications.update(report.multiplications)
            for one in report.devices:
                known = devices.get(one.device)
                devices[one.device] = one if known is None else known.plus(one)
        return Report(
            tuple(row for report in reports for row in report.rows),
            tuple(warning for report in reports for warning in report.warnings),
            composites,
            multiplications,
            tuple(variant for report in reports for variant in report.variants),
            tuple(devices.values()),
            reports[0].compile_seconds,
            reports[0].pass_seconds,
        )

    def __iter__(self) -> Iterator[ReportRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def placed(self, placement: str) -> tuple[ReportRow, ...]:
        """Returns the rows with one placement: a backend's name, `host`, `folded` or `removed`."""
        return tuple(row for row in self.rows if row.placement == placement)

    def counts(self) -> dict[str, int]:
        """Returns the number of nodes at each placement, in descending order."""
        return dict(Counter(row.placement for row in self.rows).most_common())

    def to_json(self) -> str:
        """Returns all rows and warnings as a JSON document."""
        document = {
            "nodes": [asdict(row) for row in self.rows],
            "composites": dict(self.composites),
            "multiplications": dict(self.multiplications),
            "variants": [asdict(variant) for variant in self.variants],
            "devices": [asdict(one) for one in self.devices],
            "warnings": list(self.warnings),
        }
        return json.dumps(document, indent=2)

    def to_html(
        self,
        title: str = "report",
        *,
        profile: Profile | None = None,
        verification: Verification | None = None,
        dump: str | Path | None = None,
    ) -> str:
        """Returns a self-contained page with the graph. See docs/view.md.

        Args:
            title: name of the model.
            profile: profile by whose times nodes can be coloured.
            verification: verification by whose differences nodes can be coloured.
            dump: folder that `compile(dump_ir=…)` wrote: the page shows the IR and code of the
                selection.
        """
        from byoc_mlir.view.excerpts import read_details  # few reports are drawn
        from byoc_mlir.view.page import page

        details = None if dump is None else read_details(Path(dump))
        return page(self, title, profile, verification, details)

    def _repr_html_(self) -> str:
        """Returns the HTML that a notebook shows."""
        from byoc_mlir.view.page import frame  # few reports are drawn

        return frame(self)

    def __str__(self) -> str:
        columns = [column for name, column in self._columns() if set(column[1:]) - _TACIT[name]]
        widths = [max(map(len, column)) for column in columns]
        columns = [
            [column[0], "-" * width, *column[1:]]
            for column, width in zip(columns, widths, strict=True)
        ]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in zip(*columns, strict=True)
        ]
        return "\n".join([*lines, *self.summary()])

    def summary(self) -> Iterator[str]:
        """Yields texts: the number of nodes by placement, precisions, variants, devices and
        warnings.
        """
        counts = ", ".join(f"{count} {name}" for name, count in self.counts().items())
        yield f"{len(self)} node{'' if len(self) == 1 else 's'}: {counts}"
        if set(self.multiplications) - _TACIT["precision"]:
            yield f"multiplications: {self._shares()}"
        for number, one in enumerate(self.variants, 1):
            yield printable(f"variant {number}: {one}")
        yield from map(str, self.devices)
        yield from (f"warning: {printable_lines(text)}" for text in self.warnings)

    def _columns(self) -> Iterator[tuple[str, list[str]]]:
        """Yields each column's name, with the texts of its head and cells."""
        for name, head in _COLUMNS.items():
            cells = (getattr(row, name) for row in self.rows)
            yield name, [head, *("" if cell is None else printable(str(cell)) for cell in cells)]

    def _shares(self) -> str:
        """Returns the shares of the MACs by precision, in descending order."""
        total = sum(self.multiplications.values())
        return ", ".join(
            f"{count / total:.1%} {name}"
            for name, count in Counter(self.multiplications).most_common()
        )


_COLUMNS = {
    "node": "node",
    "op_type": "op",
    "placement": "placement",
    "region": "region",
    "composite": "composite",
    "precision": "precision",
    "implementation": "implementation",
    "times": "whole region",
    "reason": "reason",
}
_TACIT = {name: {"", "f32"} if name == "precision" else {""} for name in _COLUMNS}
"""Default value by column; a column with no other value is omitted."""
