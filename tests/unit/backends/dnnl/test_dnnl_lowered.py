"""What `byoc-opt` prints is what `compile` makes code from."""

from __future__ import annotations

import textwrap
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto
from xdsl.dialects.func import FuncOp

from byoc_mlir.backends.dnnl import DnnlBackend
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.measurements import Measuring, measuring
from byoc_mlir.backends.dnnl.passes.pipeline import pipeline
from byoc_mlir.compiler import pipeline as stages
from byoc_mlir.compiler.build import Build
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import read_source
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.tools.byoc_opt import main
from byoc_mlir.transforms.partition_for import PartitionFor


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> list[FuncOp]:
    """The regions that code was made from, since the test began."""
    found: list[FuncOp] = []
    lowered = DnnlBackend.lowered

    def recorded(self: DnnlBackend, region: FuncOp, threads: int) -> FuncOp:
        found.append(lowered(self, region, threads))
        return found[-1]

    monkeypatch.setattr(DnnlBackend, "lowered", recorded)
    return found


def _generate(model: ModelProto, threads: int) -> None:
    """All stages of a compilation up to the code of regions."""
    options = CompileOptions(("dnnl",), threads, fallback="allow")
    build = Build(read_source(model), {}, {}, options)
    for stage in (stages.import_model, stages.canonicalise, stages.partition, stages.generate):
        stage(build)


@pytest.mark.parametrize(
    ("name", "parameters", "threads"),
    [
        ("resnet18", {"image": 64}, 2),
        ("bert6", {"batch": 1}, 1),
        ("lstm2", {"batch": 2, "steps": 8}, 2),
    ],
)
def test_byoc_opt_prints_what_is_compiled(
    name: str,
    parameters: dict[str, int],
    threads: int,
    tmp_path: Path,
    regions: list[FuncOp],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With one set of measurements, which the process keeps."""
    model, path = NETWORKS[name](**parameters), tmp_path / "model.onnx"
    onnx.save(model, path)
    target = PartitionFor(targets=("dnnl",))
    passes = (*stages.CANONICALISATION, target, *pipeline(threads, Choices()))
    with measuring(Measuring(seconds=60)):
        _generate(model, threads)
        assert main([str(path), "-p", ",".join(map(str, passes))]) == 0
    printed = capsys.readouterr().out
    assert printed.count('byoc.compiler = "dnnl"') == len(regions) > 0
    for region in regions:
        assert textwrap.indent(str(region), "  ") in printed


def test_the_documentation_has_each_pass() -> None:
    text = (Path(__file__).parents[4] / "docs" / "dnnl.md").read_text()
    for name in DnnlBackend().passes():
        assert f"`{name}" in text
