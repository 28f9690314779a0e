"""Writes docs/op-types.md, the table of ONNX ops, element types and backends.

python tools/op_types.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from byoc_mlir.testing.isa import call_at
from byoc_mlir.testing.op_types import LEVEL, op_types_page

_PAGE = Path(__file__).parent.parent / "docs/op-types.md"


def main() -> int:
    """Writes the page."""
    _PAGE.write_text(call_at(LEVEL, print_page, seconds=3600))
    return 0


def print_page() -> None:
    """Prints the page."""
    sys.stdout.write(op_types_page())


if __name__ == "__main__":
    sys.exit(main())
