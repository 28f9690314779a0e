"""Writes docs/operators.md, the table of ONNX ops and how they are supported.

python tools/operators.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from byoc_mlir.testing.onnx_suite import Expectations
from byoc_mlir.testing.operator_table import operators_page

_ROOT = Path(__file__).parent.parent


def main() -> int:
    """Writes the page."""
    expectations = Expectations.read(_ROOT / "tests/unit/onnx_suite/expectations.toml")
    (_ROOT / "docs/operators.md").write_text(operators_page(expectations))
    return 0


if __name__ == "__main__":
    sys.exit(main())
