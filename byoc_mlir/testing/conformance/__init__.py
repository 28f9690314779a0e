"""Conformance kit for vendors, which tests that a backend does what it claims:
`docs/conformance.md`.
"""

from byoc_mlir.testing.conformance.kit import run_conformance
from byoc_mlir.testing.conformance.report import ConformanceReport, Coverage, Outcome
from byoc_mlir.testing.samples.relay_ops.sample import Sample

__all__ = ["ConformanceReport", "Coverage", "Outcome", "Sample", "run_conformance"]
