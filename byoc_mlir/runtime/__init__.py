"""Execution of compiled models, independent of the compiler."""

from byoc_mlir.runtime.executable import Executable
from byoc_mlir.runtime.program import Program
from byoc_mlir.runtime.report import Report, ReportRow

__all__ = ["Executable", "Program", "Report", "ReportRow"]
