"""Runs ONNX's backend test suite through byoc_mlir and says what became of the cases.

python tools/onnx_suite.py [--targets dnnl] [--only REGEX] [--out results.json]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from dataclasses import asdict

import numpy as np

from byoc_mlir.testing.onnx_suite import Outcome, run_case, suite_cases


def main() -> int:
    """Prints a summary; 0 always, every case's outcome is in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="", help="backends, separated by commas")
    parser.add_argument("--only", default="", help="a regular expression that names match")
    parser.add_argument("--out", help="a JSON file for the outcome of every case")
    args = parser.parse_args()
    targets = tuple(filter(None, args.targets.split(",")))
    start = time.perf_counter()
    cases = [case for case in suite_cases() if re.search(args.only, case.name)]
    collected = time.perf_counter() - start
    with np.errstate(all="ignore"):
        outcomes = {case.name: run_case(case, targets) for case in cases}
    _print_summary(outcomes)
    print(f"collected in {collected:.0f} s, run in {time.perf_counter() - start - collected:.0f} s")
    if args.out:
        with open(args.out, "w") as file:
            json.dump({name: asdict(o) for name, o in outcomes.items()}, file, indent=1)
    return 0


def _print_summary(outcomes: dict[str, Outcome]) -> None:
    passed = [outcome for outcome in outcomes.values() if outcome.passed]
    native = sum(not outcome.net for outcome in passed)
    seconds = sum(outcome.seconds for outcome in outcomes.values())
    print(f"{len(passed)} of {len(outcomes)} pass, {native} without the fallback interpreter")
    print(f"{seconds:.0f} s of processor time; the longest:")
    for name, outcome in sorted(outcomes.items(), key=lambda item: -item[1].seconds)[:10]:
        print(f"  {outcome.seconds:6.2f} s {name}")
    print("not passed, by reason:")
    reasons = Counter(_kind(outcome.reason) for outcome in outcomes.values() if outcome.reason)
    for text, count in reasons.most_common(40):
        print(f"  {count:4} {text}")


def _kind(reason: str) -> str:
    return re.sub(r"[0-9]+", "#", reason)[:140]


if __name__ == "__main__":
    sys.exit(main())
