"""The fuzzer's command line, `byoc-fuzz --help`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from byoc_mlir.backends import split_targets
from byoc_mlir.boundary import STRICT_VARIABLE
from byoc_mlir.errors import ByocError
from byoc_mlir_fuzz.campaign import Campaign
from byoc_mlir_fuzz.case import Case, Settings
from byoc_mlir_fuzz.cases import Plan
from byoc_mlir_fuzz.oracles import require_onnxruntime
from byoc_mlir_fuzz.report import summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a campaign and prints its findings.

    Returns:
        0 if nothing failed, 1 if something did, 2 if the campaign could not run.
    """
    args = _parser().parse_args(arguments)
    os.environ.setdefault(STRICT_VARIABLE, "on")
    plan = Plan(args.seed, args.shapes == "symbolic", args.mutate)
    targets = None if args.targets is None else split_targets(args.targets)
    settings = Settings(
        targets, tuple(args.backend), args.threads, args.memory << 20, args.interpreter
    )
    campaign = Campaign(settings, args.jobs, args.timeout, args.out, _say)
    try:
        if not args.mutate:
            require_onnxruntime()
        tally = campaign.run(_cases(plan, args), _seconds(args))
    except ByocError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(summary(tally, args.mutate))
    failed = tally.failures() + (tally.refusals() if args.strict else [])
    return 1 if failed else 0


def _cases(plan: Plan, args: argparse.Namespace) -> Iterator[Case]:
    if args.case is not None:
        return iter([plan.case(args.case)])
    return islice(plan.cases(args.start), args.cases)


def _seconds(args: argparse.Namespace) -> float | None:
    bounded = args.case is not None or args.cases is not None
    if args.minutes is None:
        return None if bounded else 60.0
    return args.minutes * 60


def _say(text: str) -> None:
    print(text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "byoc-fuzz",
        description="Random and damaged models against ONNX Runtime and the reference evaluator.",
    )
    add = parser.add_argument
    add("--minutes", type=float, help="how long to begin new cases (default: 1, if no --cases)")
    add("--cases", type=int, help="how many cases at most")
    add("--seed", type=int, default=0, help="which cases (default: 0)")
    add("--start", type=int, default=0, help="the number of the first case")
    add("--case", type=int, metavar="N", help="this case alone")
    add("--targets", help="as in byoc run; '' for the host alone (default: the default targets)")
    add(
        "--backend",
        action="append",
        default=[],
        metavar="FILE.py|package.module",
        help="load a module that registers backends; may be given several times",
    )
    add("--shapes", choices=("static", "symbolic"), default="static", help="sizes of inputs")
    add(
        "--interpreter",
        action="store_true",
        help="in the interpreter tier, as models run until they are compiled",
    )
    add("--mutate", action="store_true", help="damaged models: a typed error or success")
    add("--threads", type=int, default=1, help="threads per run (default: 1)")
    add("--jobs", type=int, default=1, help="processes (default: 1)")
    add("--timeout", type=float, default=60.0, help="seconds for one case (default: 60)")
    add("--memory", type=int, default=6144, help="MiB of address space of a process")
    add("--out", type=Path, help="a folder for minimised failures")
    add("--strict", action="store_true", help="valid models that are refused count as failures")
    return parser


if __name__ == "__main__":
    sys.exit(main())
