"""Comparison of PyTorch's own operator samples in `torch.compile` with eager PyTorch.

    python tools/torch_samples.py --dtype float32 --count 3 --processes 2 --out samples.tsv

Values, types, shapes, strides and shared memory have to equal eager PyTorch's, in the same order. A
row is a sample: form, `same`, `pytorch` or `differs`, its number, and the difference or the reason
why it runs in PyTorch. A run continues the last one with the same file. It needs `torch`,
`onnxscript`, `scipy` and `expecttest`.
"""

from __future__ import annotations

import argparse
import functools
import logging
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("BYOC_CACHE_DIR", tempfile.mkdtemp())

import torch
import torch._dynamo
from torch.utils import _pytree as pytree

SECONDS = 600
"""Maximum time in seconds of a sample; a slower one counts as different."""

RANDOM = re.compile(
    "rand|bernoulli|dropout|multinomial|normal|uniform|exponential|cauchy|geometric|empty|rrelu"
    "|poisson|binomial"
)
"""Forms with random results."""


def main() -> None:
    arguments = _arguments()
    logging.disable(logging.WARNING)
    _share_tables()
    work = list(enumerate(_forms(arguments)))
    if arguments.processes == 1:
        _run(arguments, work)
    else:
        parts = [work[part :: arguments.processes] for part in range(arguments.processes)]
        workers = [multiprocessing.Process(target=_run, args=(arguments, part)) for part in parts]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    print_table(arguments.out)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compares PyTorch's samples of its operators with eager."
    )
    parser.add_argument("--dtype", default="float32", help="float32, int64, bool, float16")
    parser.add_argument("--count", type=int, default=3, help="samples of each form")
    parser.add_argument("--forms", default="", help="a regular expression of names")
    parser.add_argument("--slice", default=":", help="of the forms, as FIRST:LAST")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("samples.tsv"))
    return parser.parse_args()


def _share_tables() -> None:
    """Builds tables of PyTorch's exporter once, since they are the same for all models."""
    from torch._export import utils
    from torch.export import exported_program
    from torch.onnx._internal.exporter import _registration

    registry = _registration.ONNXRegistry
    registry.from_torchlib = staticmethod(functools.cache(registry.from_torchlib))
    collect = functools.cache(utils._collect_all_valid_cia_ops)
    for module in (utils, exported_program):
        if hasattr(module, "_collect_all_valid_cia_ops"):
            setattr(module, "_collect_all_valid_cia_ops", lambda: set(collect()))  # noqa: B010


def _forms(arguments: argparse.Namespace) -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    dtype = getattr(torch, arguments.dtype)
    known = _known(arguments.out)
    forms = [
        form
        for form in op_db
        if dtype in form.supported_dtypes("cpu")
        and not RANDOM.search(form.full_name)
        and re.search(arguments.forms, form.full_name)
    ]
    first, _, last = arguments.slice.partition(":")
    forms = forms[int(first or 0) : int(last or len(forms))]
    return [form for form in forms if form.full_name not in known]


def _known(out: Path) -> set[str]:
    return {line.split("\t")[0] for line in out.read_text().splitlines()} if out.exists() else set()


def _run(arguments: argparse.Namespace, work: list[tuple[int, Any]]) -> None:
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _stop)
    for _, form in work:
        for number, sample in _samples(form, arguments):
            row = (form.full_name, *judged(form.op, sample))
            text = "\t".join([row[0], row[1], str(number), " ".join(row[2].split())[:300]])
            with arguments.out.open("a") as file:
                print(text, file=file)


def _samples(form: Any, arguments: argparse.Namespace) -> Iterator[tuple[int, Any]]:
    torch.manual_seed(0)
    try:
        samples = list(form.sample_inputs("cpu", getattr(torch, arguments.dtype)))
    except Exception as error:  # what a form's author has not foreseen
        print(form.full_name, type(error).__name__, file=sys.stderr)
        return
    step = max(1, len(samples) // arguments.count)
    yield from list(enumerate(samples))[::step][: arguments.count]


def _stop(*_: object) -> None:
    raise TimeoutError


def judged(function: Callable[..., Any], sample: Any) -> tuple[str, str]:
    """Returns `same`, `pytorch` or `differs`, and the difference or the reason."""
    flat, structure = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))

    def call(leaves: list[Any]) -> Any:
        first, others, keywords = pytree.tree_unflatten(leaves, structure)
        return function(first, *others, **keywords)

    torch._dynamo.reset()
    with torch.no_grad(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            wanted = call(flat)
            if difference(wanted, call(flat), flat):
                return "same", "eager differs from itself"
        except Exception as error:  # no answer to compare with
            return "same", f"eager refuses: {error}"
        signal.alarm(SECONDS)
        try:
            found = difference(wanted, torch.compile(call, backend="byoc_mlir")(flat), flat)
        except Exception as error:  # all that a user would see
            found = f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
    said = [str(one.message) for one in caught if "runs in PyTorch" in str(one.message)]
    if found:
        return "differs", f"{found} {said[:1]}"
    return ("pytorch", said[0]) if said else ("same", "")


def difference(wanted: Any, got: Any, arguments: list[Any]) -> str:
    """Returns the first difference of two results; empty if there is none."""
    wanted, got = pytree.tree_leaves(wanted), pytree.tree_leaves(got)
    if len(wanted) != len(got):
        return f"{len(got)} results, wanted {len(wanted)}"
    found = [_difference(*pair) for pair in zip(wanted, got, strict=True)]
    memory = [_sharing([*arguments, *results]) for results in (wanted, got)]
    if memory[0] != memory[1]:
        found.append(f"shared memory {memory[1]}, wanted {memory[0]}")
    return next(filter(None, found), "")


def _difference(wanted: Any, got: Any) -> str:
    if not isinstance(wanted, torch.Tensor) or not isinstance(got, torch.Tensor):
        is_same = type(wanted) is type(got) and (wanted == got or wanted != wanted)
        return "" if is_same else f"{got!r}, wanted {wanted!r}"
    if wanted.layout != torch.strided:
        return "" if wanted.layout == got.layout else f"layout {got.layout}"
    for name in ("dtype", "shape", "stride"):
        one, other = (getattr(tensor, name) for tensor in (wanted, got))
        if name == "stride":
            one, other = one(), other()
        if one != other and (name != "stride" or wanted.numel() > 1):
            return f"{name} {other}, wanted {one}"
    rtol, atol = (2e-3, 1e-3) if wanted.dtype == torch.float16 else (2e-4, 2e-5)
    try:
        torch.testing.assert_close(got, wanted, equal_nan=True, rtol=rtol, atol=atol)
    except AssertionError as error:
        return f"values: {error}"
    return ""


def _sharing(values: list[Any]) -> list[int]:
    """Returns for each tensor the position of the first one that has the same memory."""
    seen: dict[int, int] = {}
    found: list[int] = []
    for at, value in enumerate(values):
        if isinstance(value, torch.Tensor) and value.layout == torch.strided and value.numel():
            found.append(seen.setdefault(value.untyped_storage().data_ptr(), at))
    return found


def print_table(out: Path) -> None:
    """Prints the numbers of samples and forms, and the forms that run in PyTorch."""
    rows = [line.split("\t") for line in out.read_text().splitlines()]
    decisions = Counter(row[1] for row in rows)
    forms = {kind: sorted({row[0] for row in rows if row[1] == kind}) for kind in decisions}
    print("| | samples | forms |\n| --- | ---: | ---: |")
    for kind, count in decisions.most_common():
        print(f"| {kind} | {count} | {len(forms[kind])} |")
    for kind in ("differs", "pytorch"):
        print(f"\n{kind}:", ", ".join(f"`{name}`" for name in forms.get(kind, [])))


if __name__ == "__main__":
    main()
