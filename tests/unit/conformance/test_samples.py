"""Every property of an op is varied by its samples: a backend that ignores one is found."""

from __future__ import annotations

import pytest
from xdsl.ir import Attribute

from byoc_mlir.testing.conformance.cases import op_cases
from byoc_mlir.testing.conformance.graph import OPS
from byoc_mlir.testing.samples.relay_ops.table import samples_of

SAMPLED = [name for name in OPS if samples_of(name)]

ONE_VALUE = {"out_dtype", "data_layout", "kernel_layout", "roi", "extrapolation_value"}
"""Properties with one value in all samples: layouts are always Relay's own; the others need a mode
of resizing without a sample.
"""


@pytest.mark.parametrize("name", SAMPLED)
def test_every_property_has_two_values(name: str) -> None:
    found: dict[str, set[Attribute]] = {
        key: set() for key in OPS[name].get_irdl_definition().properties if key not in ONE_VALUE
    }
    cases = list(op_cases(name, samples_of(name)))
    for case in cases:
        for op in case.module.walk():
            if op.name == OPS[name].name:
                for key in found:
                    found[key].add(op.properties[key])
    labels = {case.label for case in cases}
    written = [sample for sample in samples_of(name) if sample.dtype == "float32"]
    assert {sample.label for sample in written} <= labels
    assert {key for key, values in found.items() if len(values) < 2} == set()


QUANTISED = [name for name in SAMPLED if name.startswith("qnn.") and name != "qnn.lookup"]


@pytest.mark.parametrize("name", QUANTISED)
def test_quantised_ops_have_a_symmetric_sample(name: str) -> None:
    assert any(sample.note == "symmetric" for sample in samples_of(name))


@pytest.mark.parametrize("name", ["qnn.conv2d", "qnn.dense", "qnn.matmul"])
def test_products_have_samples_of_symmetric_weights(name: str) -> None:
    found = [sample for sample in samples_of(name) if sample.range_of(3) == (0, 0)]
    assert any(sample.dtype == "uint8" for sample in found)
