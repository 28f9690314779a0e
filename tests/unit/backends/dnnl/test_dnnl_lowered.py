"""Equality of the IR that `byoc-opt` prints and the IR from which `compile` generates code."""

from __future__ import annotations

import textwrap
from pathlib import Path

import onnx
import pytest
from dnnl_models import convolution, node
from onnx import ModelProto
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends.dnnl import DnnlBackend
from byoc_mlir.backends.dnnl.choices import Choices
from byoc_mlir.backends.dnnl.costs.measured import check_library
from byoc_mlir.backends.dnnl.passes.pipeline import pipeline
from byoc_mlir.backends.dnnl.passes.prepare_dnnl_regions import PrepareDnnlRegions
from byoc_mlir.calibration import (
    Calibration,
    Measurement,
    measuring,
    read_calibration,
    using,
    write_calibration,
)
from byoc_mlir.compiler import pipeline as stages
from byoc_mlir.compiler.build import Build
from byoc_mlir.compiler.calibration import calibration_of
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.source import read_source
from byoc_mlir.errors import ByocError
from byoc_mlir.lowering.host_pipeline import all_of
from byoc_mlir.onednn.library import load_library
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.tools.byoc_opt import main
from byoc_mlir.transforms.limit_weight_growth import LimitWeightGrowth
from byoc_mlir.transforms.partition_for import PartitionFor


@pytest.fixture
def regions(monkeypatch: pytest.MonkeyPatch) -> list[FuncOp]:
    """Returns the regions from which code was generated since the test began."""
    found: list[FuncOp] = []
    lowered = DnnlBackend.lowered

    def recorded(self: DnnlBackend, region: FuncOp, threads: int) -> FuncOp:
        found.append(lowered(self, region, threads))
        return found[-1]

    monkeypatch.setattr(DnnlBackend, "lowered", recorded)
    return found


def _generate(model: ModelProto, threads: int) -> None:
    """Runs all stages of a compilation up to the code of regions."""
    options = CompileOptions(b"", ("dnnl",), threads, fallback="allow")
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
    """Checks with measured latencies, which the process keeps."""
    model, path = NETWORKS[name](**parameters), tmp_path / "model.onnx"
    onnx.save(model, path)
    before = (PartitionFor(targets=("dnnl",)), LimitWeightGrowth())
    passes = (*all_of(stages.CANONICALISATION), *before, *pipeline(threads, Choices()))
    with using(calibration_of(None)), measuring():
        _generate(model, threads)
        assert main([str(path), "-p", ",".join(map(str, passes))]) == 0
    printed = capsys.readouterr().out
    assert printed.count('byoc.compiler = "dnnl"') == len(regions) > 0
    for region in regions:
        assert textwrap.indent(str(region), "  ") in printed


def test_a_file_of_calibration_decides(
    tmp_path: Path, regions: list[FuncOp], capsys: pytest.CaptureFixture[str]
) -> None:
    """Checks that the same file gives the same IR, and that its values are not measured again."""
    path, calibration = tmp_path / "model.onnx", tmp_path / "calibration.json"
    built = convolution((1, 16, 20, 20), 16, (3, 3), [node("Relu", "c")], pads=[1, 1, 1, 1])
    onnx.save(built, path)
    partitioning = (PartitionFor(targets=("dnnl",)), LimitWeightGrowth())
    before = (*all_of(stages.CANONICALISATION), *partitioning)
    measured = (*before, PrepareDnnlRegions())
    with measuring():
        assert main([str(path), "-p", ",".join(map(str, measured))]) == 0
    write_calibration(calibration_of(None), calibration)
    capsys.readouterr()
    assert any(key.startswith("dnnl/convolution") for key in read_calibration(calibration))
    given = (*before, PrepareDnnlRegions(calibration=str(calibration)))
    assert main([str(path), "-p", ",".join(map(str, given))]) == 0
    printed = capsys.readouterr().out
    assert main([str(path), "-p", ",".join(map(str, given))]) == 0
    assert capsys.readouterr().out == printed
    byoc_mlir.compile(built, ("dnnl",), threads=1, calibration=calibration)
    assert textwrap.indent(str(regions[0]), "  ") in printed


@pytest.mark.parametrize(
    ("key", "source", "value", "reason"),
    [
        ("dnnl/eltwise_forward/jit/1/a", "oneDNN 0.1", 1.0, "measured with 'oneDNN 0.1'"),
        ("dnnl/eltwise_forward/jit/1/a", None, 0.0, "accepted are numbers above 0"),
        ("dnnl/eltwise_forward/jit/1/a", None, "fast", "accepted are numbers above 0"),
    ],
)
def test_other_measurements_are_no_times(
    key: str, source: str | None, value: float | str, reason: str
) -> None:
    here = f"oneDNN {'.'.join(map(str, load_library().version))}"
    known = Measurement(key, "ms", source or here, value)
    with pytest.raises(ByocError, match=reason):
        check_library(Calibration([known], is_fixed=True))


def test_the_documentation_has_each_pass() -> None:
    text = (Path(__file__).parents[4] / "docs" / "dev-notes" / "dnnl.md").read_text()
    for name in DnnlBackend().passes():
        assert f"`{name}" in text
