"""State and settings of a compilation, and its timed stages."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.backends import Backend
from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.calibration import using
from byoc_mlir.compiler.calibration import calibration_of
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import Shapes, Source, Values, read_source
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.boundary import ir_boundary
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.disabled import disabling
from byoc_mlir.frontend.model import ImportedModel
from byoc_mlir.ir_dump import dumping
from byoc_mlir.limits import check_time, limited
from byoc_mlir.progress import shown
from byoc_mlir.runtime.report import Report

_LONGEST_NAME = 255
"""Maximum bytes of a file's name on Linux."""

_KEPT_CHARACTERS = 48
"""Number of characters that always fit; a character has at most four bytes."""


class Stages:
    """Runner of named stages, which keeps their times.

    Attributes:
        seconds: time of each stage.
        pass_seconds: time of each pass. The time of a stage outside of passes has the stage's name
          in parentheses, so that both have the same sum.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.pass_seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Generator[None]:
        """Times the code in the `with` body under `name`, and attributes its errors to the
        stage.
        """
        check_time()
        start, in_passes = time.perf_counter(), self._seconds_in_passes()
        try:
            with shown(name), ir_boundary(name):
                yield
        finally:
            seconds = time.perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.add_pass(f"({name})", seconds - (self._seconds_in_passes() - in_passes))

    def add_pass(self, name: str, seconds: float) -> None:
        """Adds seconds to the time of a pass."""
        self.pass_seconds[name] = self.pass_seconds.get(name, 0.0) + seconds

    def _seconds_in_passes(self) -> float:
        return sum(self.pass_seconds.values())


if TYPE_CHECKING:
    from byoc_mlir.compiler.devices import Uploads
    from byoc_mlir.transforms.traffic import Traffic


@dataclass
class Build:
    """State of the compilation of a model for one set of input shapes and values.

    Each stage of `pipeline` reads the results of the earlier stages and adds its own. A field stays
    without a value until its stage has run.
    """

    source: Source
    shapes: Shapes
    values: Values
    options: CompileOptions
    context: Context = field(default_factory=make_context)
    stages: Stages = field(default_factory=Stages)

    imported: ImportedModel = field(init=False)
    """The model, from `import_model` on. The stages change its module in place: `link` leaves it in
    the `llvm` dialect, with the code of all regions.
    """
    backends: tuple[Backend, ...] = field(init=False)
    """Backends of the partitioning, the fallback interpreter last; from `partition` on."""
    problems: list[str] = field(default_factory=list[str])
    """Problems that did not end the compilation, for the report."""
    traffic: Traffic | None = None
    """MACs and bytes of each node; from `generate` on, if the program is for profiles."""
    codes: tuple[RegionCode, ...] = field(init=False)
    """Code of each region, in the module's order; from `generate` on."""
    uploads: Uploads | None = None
    """Devices, if the program uses some, and their regions' constants; from `generate` on."""
    report: Report = field(init=False)
    """Report of the compilation; from `generate` on."""
    constants: Sequence[Weight] = field(init=False)
    """Constants that the host's code refers to; from `lower` on."""
    objects: Sequence[bytes] = field(init=False)
    """Object files of the module; from `optimise` on."""

    @property
    def module(self) -> ModuleOp:
        """Returns the model's IR in its current form."""
        return self.imported.module

    def of_part(self, module: ModuleOp) -> Build:
        """Creates a build of one part of the partitioned model, without warnings and profile.

        Args:
            module: the part as a separate model, partitioned for the same backends.
        """
        source = read_source(module)
        part = Build(
            source,
            {},
            {},
            replace(self.options, fallback="allow", profile=False),
            context=self.context,
        )
        part.imported = source.bind({}, {})
        part.backends = self.backends
        return part


@contextmanager
def compiling(build: Build, folder: Path | None) -> Generator[None]:
    """Sets the context of all stages of a compilation.

    It consists of limits, calibration, dump folder and other settings.
    """
    options = build.options
    calibration = calibration_of(options.calibration)
    with (
        limited(options.limits),
        using(calibration),
        disabling(frozenset(options.disable)),
        shown("compile"),
        dumping(folder),
    ):
        try:
            yield
        finally:
            calibration.save()


def dump_folder(folder: Path | None, source: Source, shapes: Shapes) -> Path | None:
    """Returns the folder for the IR of one set of input shapes.

    It is below the folder of the model's part, and separate for each set of shapes if there are
    several.
    """
    if folder is None:
        return None
    folder = folder.joinpath(*source.part)
    if all(info.is_static for info in source.inputs):
        return folder
    parts = (f"{name}={'x'.join(map(str, shape)) or 'scalar'}" for name, shape in shapes.items())
    name = "_".join(re.sub(r"[^\w=.-]", "_", part) for part in parts)
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f"{name[:_KEPT_CHARACTERS]}_{sha256(name.encode()).hexdigest()[:16]}"
    return folder / name
