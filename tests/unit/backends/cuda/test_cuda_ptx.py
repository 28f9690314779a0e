"""PTX of the kernels of the bundled networks, which NVIDIA's assembler accepts without spills."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.cuda.networks import assembler, kernels_of, usage_of

from byoc_mlir.backends.cuda.kernels.ptx import ptx_of
from byoc_mlir.testing.networks import NETWORKS

_MOST_REGISTERS = 64
"""Registers of a thread with which a multiprocessor holds four blocks of 256 threads."""


@pytest.mark.parametrize("name", NETWORKS)
def test_kernels_assemble_without_spills(name: str, tmp_path: Path) -> None:
    ptxas = assembler()
    if ptxas is None:
        pytest.skip("ptxas is not installed: the wheel nvidia-cuda-nvcc has it")
    for region in kernels_of(NETWORKS[name]()):
        usage = usage_of(ptxas, ptx_of(region.module), tmp_path, "sm_90")
        assert usage.keys() == set(region.kernels)
        for kernel, used in usage.items():
            assert used.registers < _MOST_REGISTERS, (kernel, used)
            assert used.spilled == 0, (kernel, used)
