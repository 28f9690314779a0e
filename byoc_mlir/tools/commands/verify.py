"""`byoc verify`: compare a compiled model with an oracle, and find the part that differs."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from byoc_mlir.progress import shown
from byoc_mlir.runtime.verification import Verification
from byoc_mlir.tools.commands import common


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of the subcommand."""
    add_compared_arguments(parser)
    parser.add_argument(
        "--nodes", action="store_true", help="compare all nodes of a model that agrees, too"
    )


def add_compared_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `byoc verify` that `byoc bisect` has too."""
    common.add_model_arguments(parser)
    common.add_inputs_arguments(parser)
    parser.add_argument(
        "--against",
        metavar="ORACLE",
        help="who says what is right: onnxruntime (the default where it is installed), reference,"
        " or host",
    )
    for name, meaning in (("rtol", "relative to the element"), ("atol", "whatever the element")):
        parser.add_argument(
            f"--{name}", type=_tolerance, metavar="NUMBER", help=f"how far off is right, {meaning}"
        )
    parser.add_argument(
        "--save",
        metavar="FOLDER",
        type=Path,
        help="write the smallest part that differs there: part.onnx, and part.npz with its inputs",
    )
    common.add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Runs the subcommand; 1 if an output differs."""
    options = options_of(args)
    with common.compile_model(args) as executable, shown("verify"):
        found = executable.verify(
            common.inputs_of(args, executable.inputs), **options, nodes=args.nodes
        )
    print(found.to_json() if args.json else found)
    save_part(args, found)
    return 0 if found.agrees else 1


def options_of(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options for `Executable.verify`; an unknown oracle is refused before the model is
    compiled.
    """
    from byoc_mlir.compiler.debugging.oracles import (
        chosen_oracle,  # slow, and the other commands do without
    )

    return {"against": chosen_oracle(args.against), "rtol": args.rtol, "atol": args.atol}


def save_part(args: argparse.Namespace, found: Verification) -> None:
    """Writes the smallest part that differs, if there is one and a folder for it."""
    if args.save is None or found.part is None:
        return
    model, inputs = found.part.save(args.save)
    if not args.json:
        print(f"\nbyoc verify {model} --inputs {inputs} tries it again")


def _tolerance(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not number >= 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number of 0 and more")
    return number
