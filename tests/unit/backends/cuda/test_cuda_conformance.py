"""Each op that the backend claims, on the recording driver.

The kit tests one op of each kind of kernel: placement, values, threads, memory. The other ops are
tested in regions of several, for their values: they share all but the kernel's body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from helpers.cuda.emulation import Record
from helpers.cuda.runs import RegionRun

from byoc_mlir.backends.cuda.rules import RULES
from byoc_mlir.compiler.source import main_function
from byoc_mlir.testing.conformance import run_conformance
from byoc_mlir.testing.conformance.accuracy import accepted_error, error_of, expected
from byoc_mlir.testing.conformance.cases import op_cases
from byoc_mlir.testing.conformance.graph import Case
from byoc_mlir.testing.conformance.runner import joined
from byoc_mlir.testing.samples.relay_ops.sample import Sample
from byoc_mlir.testing.samples.relay_ops.table import samples_of

_OF_A_KIND = (
    *("add", "exp", "cast", "nn.layer_norm", "nn.softmax", "sum", "argmax", "cumsum"),
    *("concatenate", "strided_slice", "take", "nn.max_pool2d", "nn.matmul", "nn.conv2d"),
    *("image.resize", "topk"),
)
"""One op of each kind of kernel."""

_OTHERS = [name for name in RULES if name not in _OF_A_KIND]
_TOGETHER = 12

_WITHOUT_SAMPLE = ("power",)
"""Ops of whose samples none is accepted; `test_cuda_random.py` tests them."""


def _groups(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[first : first + _TOGETHER] for first in range(0, len(names), _TOGETHER)]


@pytest.mark.parametrize("ops", _groups(_OF_A_KIND), ids=lambda ops: ops[0])
def test_a_kind_of_kernel_agrees_with_numpy(gpu: Record, ops: Sequence[str]) -> None:
    report = run_conformance("cuda", only=ops, networks={})

    assert report.passed, str(report)
    assert "cuLaunchKernel" in gpu.calls()


@pytest.mark.parametrize("ops", _groups(_OTHERS), ids=lambda ops: ops[0])
def test_kernels_agree_with_numpy(gpu: Record, ops: Sequence[str]) -> None:
    cases = {name: [*_accepted(name)] for name in ops}
    assert {name for name, found in cases.items() if not found} <= {*_WITHOUT_SAMPLE}
    all_cases = [case for found in cases.values() for case in found]
    whole = joined(all_cases)

    results = iter(RegionRun(main_function(whole.module)).run(list(whole.inputs)))

    for case in all_cases:
        function = main_function(case.module)
        for want in expected(function, case.inputs):
            found = next(results)
            assert found.shape == want.shape
            error = error_of(found, want)
            assert error <= accepted_error(function), f"{case.subject}: {case.label}"


def _accepted(name: str) -> Iterator[Case]:
    """Yields the cases of an op that the backend's rule accepts."""
    for case in op_cases(name, _distinct(samples_of(name))):
        ops = [op for op in main_function(case.module).walk() if op.name == f"relay.{name}"]
        if all(RULES[name](op) is None for op in ops):
            yield case


def _distinct(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Returns the samples without those that differ from another one in the shape only."""
    return [*{_kind(sample): sample for sample in reversed(samples)}.values()]


def _kind(sample: Sample) -> str:
    types = [sample.dtype_of(index) for index in range(len(sample.rest(sample.data)) + 1)]
    return f"{types} {sample.first_constant} {sample.attributes} {sample.special} {sample.note}"
