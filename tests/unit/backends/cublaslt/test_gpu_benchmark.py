"""The script for machines with a GPU: its arguments, and parts of it on the recording driver."""

from __future__ import annotations

import ctypes
import json
import sys
from functools import partial
from pathlib import Path

import pytest
from helpers.cuda.emulation import Record
from helpers.cuda.fixtures import forgotten_gpus

from byoc_mlir.nvidia.driver import ENVIRONMENT_VARIABLE
from byoc_mlir.testing.conformance import run_conformance

sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))
import gpu as script

__all__ = ["forgotten_gpus"]

pytestmark = pytest.mark.usefixtures("forgotten_gpus")


@pytest.fixture(autouse=True)
def _without_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "_ALL", ("cublaslt", "cuda"))


def test_without_a_gpu_nothing_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "/nowhere/libcuda.so.1")

    assert script.main([]) == 2

    assert "nothing was measured: NVIDIA's driver is not installed" in capsys.readouterr().err


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        script.main(["speed"])

    assert left.value.code == 2
    assert "conformance" in capsys.readouterr().err


def test_limits_are_eight_minutes() -> None:
    assert sum(timed.seconds for timed in script.PARTS.values()) <= 480


def test_networks_agree(
    gpu: Record, cublaslt: ctypes.CDLL, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = tmp_path / "found.json"

    assert script.main(["networks", "--only", "mlp3", "--json", str(document)]) == 0

    (result,) = json.loads(document.read_text())
    assert result["what"] == "mlp3"
    assert result["is_good"]
    assert "'cublaslt': 5" in result["found"]
    assert capsys.readouterr().out.startswith("ok  mlp3: error ")
    assert "cuGraphLaunch" in gpu.calls()


def test_what_is_wrong_is_said(
    gpu: Record, cublaslt: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "_MOST_ERROR", -1.0)

    assert script.main(["networks", "--only", "mlp3"]) == 1


def test_a_backend_conforms(
    gpu: Record, cublaslt: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks one op; `test_cublaslt_conformance.py` has the others."""
    monkeypatch.setattr(script, "run_conformance", partial(run_conformance, only=("nn.dense",)))
    assert script.main(["conformance", "--only", "cublaslt"]) == 0


def test_the_first_answer_is_timed(gpu: Record, cublaslt: ctypes.CDLL) -> None:
    (result,) = script.first_answer(["mlp3"])

    assert result.what == "first answer of mlp3"
    assert result.found.endswith(" s")
