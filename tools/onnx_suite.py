"""Runs the cases of ONNX's backend test suite through byoc_mlir and writes what became of each.

python tools/onnx_suite.py [--targets dnnl] [--only REGEX] [--out results.json]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

from byoc_mlir.onnx_backend import ByocBackend

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")


def cases(only: str) -> list[Any]:
    """The suite's cases whose names match."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = [case for kind in KINDS for case in load_model_tests(kind=kind)]
    return [case for case in loaded if re.search(only, case.name)]


def outcome(case: Any, targets: tuple[str, ...]) -> str:
    """`pass`, or why not."""
    try:
        model, data = _load(case)
        prepared = ByocBackend.prepare(model, targets=targets, fallback="allow")
        for inputs, expected in data:
            got = list(prepared.run(inputs))
            Runner.assert_similar_outputs(expected, got, case.rtol, case.atol)
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().replace("\n", " ")[:300]
    return "pass"


def _load(case: Any) -> tuple[Any, list[tuple[list[Any], list[Any]]]]:
    if case.model is not None:
        return case.model, case.data_sets
    folder = Path(case.model_dir)
    data = [
        (_tensors(directory, "input"), _tensors(directory, "output"))
        for directory in sorted(folder.glob("test_data_set_*"))
    ]
    return onnx.load(folder / "model.onnx"), data


def _tensors(directory: Any, kind: str) -> list[Any]:
    count = len(list(directory.glob(f"{kind}_*.pb")))
    return [
        numpy_helper.to_array(onnx.load_tensor(directory / f"{kind}_{index}.pb"))
        for index in range(count)
    ]


def main() -> int:
    """Prints a summary; 0 always, the results are in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--out")
    args = parser.parse_args()
    targets = tuple(filter(None, args.targets.split(",")))
    results: dict[str, str] = {}
    start = time.perf_counter()
    with np.errstate(all="ignore"):
        for case in cases(args.only):
            results[case.name] = outcome(case, targets)
    passed = sum(result == "pass" for result in results.values())
    print(f"{passed} of {len(results)} pass, {time.perf_counter() - start:.0f} s")
    reasons = Counter(_kind(text) for text in results.values() if text != "pass")
    for text, count in reasons.most_common(40):
        print(f"  {count:4} {text}")
    if args.out:
        with open(args.out, "w") as file:
            json.dump(results, file, indent=1, sort_keys=True)
    return 0


def _kind(text: str) -> str:
    return re.sub(r"[0-9]+", "#", text)[:140]


if __name__ == "__main__":
    sys.exit(main())
