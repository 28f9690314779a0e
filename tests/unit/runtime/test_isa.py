"""`BYOC_MAX_ISA`: it lowers the instructions that LLVM and oneDNN may use; results stay right."""

from __future__ import annotations

from pathlib import Path

import pytest
from isa_checks import check_level

from byoc_mlir.errors import ByocError
from byoc_mlir.runtime.system import cpu
from byoc_mlir.runtime.system.cpu import Cpu
from byoc_mlir.testing.isa import call_at, distinct_levels, run_at


@pytest.mark.parametrize("level", distinct_levels(*cpu.LEVELS))
def test_a_level(level: str) -> None:
    call_at(level, check_level)


def test_a_level_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu.max_level.cache_clear()
    monkeypatch.setenv(cpu.MAX_ISA, "AVX2")
    with pytest.raises(ByocError, match="BYOC_MAX_ISA is 'AVX2', accepted are sse41, avx2, avx512"):
        cpu.max_level()
    cpu.max_level.cache_clear()


def test_the_highest_level_is_the_machine() -> None:
    script = "from byoc_mlir.runtime.system.cpu import Cpu; print(Cpu.host() == Cpu.machine())"
    if cpu.max_level() is None:
        assert run_at("amx", script) == "True\n"
    assert set(Cpu.host().features) <= set(Cpu.machine().features)


EFFECTIVE = """
from byoc_mlir.onednn.library import load_library
print(load_library().handle.dnnl_get_effective_cpu_isa())
"""


def test_the_users_own_variable_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "AVX")
    assert run_at("sse41", EFFECTIVE) == "3\n"
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "SSE41")
    assert run_at("avx2", EFFECTIVE) == "1\n"


def test_levels_contain_each_other() -> None:
    for lower, higher in zip(cpu.LEVELS, cpu.LEVELS[1:], strict=False):
        assert cpu.features_up_to(lower) < cpu.features_up_to(higher)
        assert cpu.compiler_features_up_to(lower) < cpu.compiler_features_up_to(higher)


def test_what_a_processor_lacks() -> None:
    features = {"sse4_1", "avx", "avx2", "fma"}
    missing = cpu.missing_by_level(features)
    assert missing["sse41"] == []
    assert missing["avx2"] == ["f16c"]


@pytest.mark.parametrize("allowed", [True, False])
def test_matrices_that_the_kernel_refuses_are_no_feature(
    allowed: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("flags : avx2 avx512f amx_tile amx_int8 amx_bf16\n")
    monkeypatch.setattr(cpu, "CPU_INFO", info)
    monkeypatch.setattr(cpu, "_may_use_matrices", lambda: allowed)
    found = set(Cpu.machine.__wrapped__().features)
    assert found >= {"avx2", "avx512f"}
    assert ({"amx_tile", "amx_int8", "amx_bf16"} <= found) == allowed
