"""Command that repeats a saved case of the conformance kit."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from byoc_mlir.backends import load_backend_module
from byoc_mlir.errors import ByocError
from byoc_mlir.testing.conformance.runner import run_cases
from byoc_mlir.testing.conformance.saved import COMMAND, read_case


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0 if the backend's results are right, 1 if they are wrong."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("case", type=Path, metavar="CASE.mlir")
    parser.add_argument("--target", required=True, help="the backend")
    parser.add_argument("--backend", metavar="FILE.py", help="a module that registers it")
    parsed = parser.parse_args(arguments)
    try:
        if parsed.backend:
            load_backend_module(parsed.backend)
        (finding,) = run_cases(parsed.target, [read_case(parsed.case)])
    except ByocError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 2
    print(finding.problem or f"right; largest error {finding.error:.1e}")  # noqa: T201
    return 1 if finding.problem else 0


if __name__ == "__main__":
    sys.exit(main())
