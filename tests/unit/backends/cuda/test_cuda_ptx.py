"""PTX of the kernels of the bundled networks, which NVIDIA's assembler accepts without spills."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.cuda.networks import assembler, kernels_of, usage_of
from helpers.cuda.runs import as_region

from byoc_mlir.backends.cuda.images import ptx_of
from byoc_mlir.backends.cuda.kernels.compile import compile_region
from byoc_mlir.backends.cuda.rules import RULES
from byoc_mlir.compiler.source import main_function
from byoc_mlir.dialects.relay import ConstantOp, RelayOp
from byoc_mlir.dialects.relay.base import relay_name
from byoc_mlir.testing.conformance.cases import op_cases
from byoc_mlir.testing.conformance.graph import Case
from byoc_mlir.testing.conformance.runner import joined
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.testing.samples.relay_ops.table import samples_of

_GROUPS = [list(RULES)[first : first + 10] for first in range(0, len(RULES), 10)]

_MOST_REGISTERS = 64
"""Registers of a thread with which a multiprocessor holds four blocks of 256 threads."""


_SPLIT = {"ssd"}
"""Networks of several models, whose shapes depend on data."""


@pytest.fixture
def ptxas() -> Path:
    """Returns the path of NVIDIA's assembler."""
    found = assembler()
    if found is None:
        pytest.skip("ptxas is not installed: the wheel nvidia-cuda-nvcc has it")
    return found


@pytest.mark.parametrize("name", sorted(NETWORKS.keys() - _SPLIT))
def test_kernels_of_networks_do_not_spill(ptxas: Path, name: str, tmp_path: Path) -> None:
    for region in kernels_of(NETWORKS[name]()):
        usage = usage_of(ptxas, ptx_of(region.module), tmp_path, "sm_90")
        assert usage.keys() == set(region.kernels)
        for kernel, used in usage.items():
            assert used.registers < _MOST_REGISTERS, (kernel, used)
            assert used.spilled == 0, (kernel, used)


def _accepted(case: Case) -> bool:
    ops = [op for op in main_function(case.module).body.block.ops if isinstance(op, RelayOp)]
    return all(RULES[relay_name(op)](op) is None for op in ops if not isinstance(op, ConstantOp))


@pytest.mark.parametrize("names", _GROUPS, ids=lambda names: names[0])
def test_kernels_of_all_ops_assemble(ptxas: Path, names: list[str], tmp_path: Path) -> None:
    found = [case for name in names for case in op_cases(name, samples_of(name))]
    cases = [case for case in found if _accepted(case)]
    region = compile_region(as_region(main_function(joined(cases).module)))
    ptx = ptx_of(region.module)

    for architecture in ("sm_75", "sm_90", "sm_100"):
        assert usage_of(ptxas, ptx, tmp_path, architecture).keys() == set(region.kernels)
