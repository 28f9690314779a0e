"""Ops that take sizes as arguments, compared with docs/shapes.md."""

from __future__ import annotations

import re
from pathlib import Path

from symbolic_samples import takes_sizes

from byoc_mlir.testing.conformance.graph import OPS

_PAGE = Path(__file__).parents[3] / "docs" / "shapes.md"


def test_the_page_lists_the_ops_that_need_numbers() -> None:
    """Checks the list; constants, control flow and a few more ops have no samples with a symbolic
    size.
    """
    found = re.search(r"numbers for all of their sizes: ([^.]*\.[^.]*)\.", _PAGE.read_text())
    assert found is not None
    listed = re.findall(r"`([^`]+)`", found[1])
    needing = [name for name in OPS if takes_sizes(name) is False]
    assert listed == needing
