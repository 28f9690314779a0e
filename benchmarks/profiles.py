"""Share of a run's time that the steps of a profile explain, and the cost of timing them.

    python benchmarks/profiles.py                    ten networks
    python benchmarks/profiles.py bert6 --runs 100

`steps` is the share of the run's wall time that rows of steps have; the rest is the row "call from
Python". `cost` is the extra CPU time of a timed run: both programs run interleaved, and the median
of the ratios is shown.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from models import known_models, write_model

import byoc_mlir
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.profiled import CALL

_TEN = (
    *("mnist", "mlp3", "lstm2", "squeezenet", "mobilenet_v2"),
    *("resnet18", "resnet50", "bert6", "vit_tiny", "ssd"),
)
_TURN_SECONDS = 0.05


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(known_models()))
    parser.add_argument("--runs", type=int, default=20, help="of the profile")
    parser.add_argument("--turns", type=int, default=15, help="of both programs")
    args = parser.parse_args()
    print(f"{'model':16} {'rows':>5} {'ms':>9} {'steps':>7} {'cost':>7}")
    for name in args.models or _TEN:
        with tempfile.TemporaryDirectory() as folder:
            print(_line(name, Path(folder), args.runs, args.turns), flush=True)


def _line(name: str, folder: Path, runs: int, turns: int) -> str:
    path, arrays = write_model(name, folder)
    inputs = dict(np.load(arrays))
    options = {"threads": 1, "fallback": "allow"}
    with (
        byoc_mlir.compile(path, profile=True, **options) as timed,
        byoc_mlir.compile(path, **options) as plain,
    ):
        profile = timed.profile(inputs, runs)
        ratio = median(_ratios(timed, plain, inputs, turns))
    steps = sum(row.milliseconds for row in profile if row.implementation != CALL)
    share = steps / profile.milliseconds
    return f"{name:16} {len(profile):5} {profile.milliseconds:9.3f} {share:7.1%} {ratio - 1:+7.1%}"


def _ratios(timed: Executable, plain: Executable, inputs: Any, turns: int) -> list[float]:
    """Returns the CPU times of the timed program relative to the plain one, one ratio for each
    turn.
    """
    count = max(1, int(_TURN_SECONDS / _seconds(plain, inputs, 3)))
    return [_seconds(timed, inputs, count) / _seconds(plain, inputs, count) for _ in range(turns)]


def _seconds(executable: Executable, inputs: Any, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        executable.run(inputs)
    return (time.process_time() - start) / count


if __name__ == "__main__":
    main()
