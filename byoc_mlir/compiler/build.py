"""`Build`: what is known of a compilation so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from byoc_mlir.backends import Backend
from byoc_mlir.backends.generate import RegionCode
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.progress import Stages
from byoc_mlir.compiler.source import Shapes, Source, Values, read_source
from byoc_mlir.dialects import make_context
from byoc_mlir.dialects.relay import Weight
from byoc_mlir.frontend.model import ImportedModel
from byoc_mlir.runtime.report import Report
from byoc_mlir.transforms.traffic import Traffic


@dataclass
class Build:
    """The compilation of a model for one set of input shapes and values.

    Each stage of `pipeline` reads what the stages before it have found, and adds what it finds. A
    field without a value belongs to a stage that was not run yet.
    """

    source: Source
    shapes: Shapes
    values: Values
    options: CompileOptions
    context: Context = field(default_factory=make_context)
    stages: Stages = field(default_factory=Stages)

    imported: ImportedModel = field(init=False)
    """From `import_model` on. The stages change its module in place: `link` leaves it in the `llvm`
    dialect, with the code of all regions."""
    backends: tuple[Backend, ...] = field(init=False)
    """From `partition` on: those that were asked, the fallback interpreter behind them."""
    problems: list[str] = field(default_factory=list[str])
    """What went wrong without ending the compilation, for the report."""
    traffic: Traffic = field(default_factory=Traffic)
    """From `generate` on, when the program is for profiles: what each node computes and moves."""
    codes: tuple[RegionCode, ...] = field(init=False)
    """From `generate` on: one for each region, in the module's order."""
    report: Report = field(init=False)
    """From `generate` on."""
    constants: Sequence[Weight] = field(init=False)
    """From `lower` on: those that the host's code refers to."""
    objects: Sequence[bytes] = field(init=False)
    """From `optimise` on: the module's object files."""

    @property
    def module(self) -> ModuleOp:
        """The model's IR, as far as it is lowered."""
        return self.imported.module

    def of_part(self, module: ModuleOp) -> Build:
        """A build of one part of the partitioned model, which nobody hears of.

        Args:
            module: a model of its own, partitioned for the same backends.
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
