"""Runs PyTorch's own operator samples through `torch.compile` and compares them with eager.

    python tools/torch_samples.py --dtype float32 --count 3 --processes 2 --out float32.tsv
    python tools/torch_samples.py --table float32.tsv float16.tsv > docs/dev-notes/pytorch-forms.md

Values, types, shapes, strides and shared memory have to be those of eager, in the same order. Where
floating-point values are not those of eager, eager computes them once more, in float64, and rounds
them: our largest error from that, in units of the tolerance, may be 1, or that of eager if this is
larger. The order of equal elements is open: of the indices of `topk` and the like, what they point
to is compared, and that none is there twice.

A row is a sample: form, `same`, `pytorch` or `differs`, its number, and the difference or the
reason for which it runs in PyTorch. A run goes on where the last one with the same file stopped. It
needs `torch`, `onnxscript`, `scipy` and `expecttest`.
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
import textwrap
import typing
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
"""Time of a sample; after it the sample counts as different."""

RANDOM = re.compile(
    "rand|bernoulli|dropout|multinomial|normal|uniform|exponential|cauchy|geometric|empty|rrelu"
    "|poisson|binomial"
)
"""Forms without an answer of their own."""

TIES = {"topk": 1, "sort": 0, "argsort": 0}
"""Forms whose indices have an open order, and where among their arguments the dimension is."""


def main() -> None:
    arguments = _arguments()
    if arguments.table:
        print_page(arguments.table)
        return
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
    parser.add_argument("--table", type=Path, nargs="+", help="prints the page of these files")
    return parser.parse_args()


def _share_tables() -> None:
    """Builds tables of PyTorch's exporter, which are the same for all models, once."""
    import torch._ops
    from torch._export import utils
    from torch.export import decomp_utils, exported_program
    from torch.onnx._internal.exporter import _registration

    registry = _registration.ONNXRegistry
    registry.from_torchlib = staticmethod(functools.cache(registry.from_torchlib))
    collect = functools.cache(utils._collect_all_valid_cia_ops)
    for module in (utils, exported_program, decomp_utils):
        if hasattr(module, "_collect_all_valid_cia_ops"):
            setattr(module, "_collect_all_valid_cia_ops", lambda: set(collect()))  # noqa: B010
    # an annotation that is evaluated thousands of times a graph, and that `typing` remembers
    setattr(torch._ops, "Callable", typing.Callable)  # noqa: B010


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
        if form.full_name in _known(arguments.out):  # another run has the same file
            continue
        for number, sample in _samples(form, arguments):
            row = (form.full_name, *judged(form, sample))
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


def judged(form: Any, sample: Any) -> tuple[str, str]:
    """Returns `same`, `pytorch` or `differs`, and the difference or the reason."""
    flat, structure = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))

    def call(leaves: list[Any]) -> Any:
        first, others, keywords = pytree.tree_unflatten(leaves, structure)
        return form.op(first, *others, **keywords)

    @functools.cache
    def exact() -> list[Any]:
        return pytree.tree_leaves(call([_widened(leaf) for leaf in flat]))

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
            got = torch.compile(call, backend="byoc_mlir")(flat)
            if form.full_name in TIES and not sample.kwargs.get("stable"):
                _settle_ties(wanted, got, sample, TIES[form.full_name])
            found = difference(wanted, got, flat, exact)
        except Exception as error:  # all that a user would see
            found = f"{type(error).__name__}: {error}"
        finally:
            signal.alarm(0)
    said = [str(one.message) for one in caught if "runs in PyTorch" in str(one.message)]
    if found:
        return "differs", f"{found} {said[:1]}"
    return ("pytorch", said[0]) if said else ("same", "")


def _widened(leaf: Any) -> Any:
    """Returns an argument of an operation in double precision."""
    if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
        return leaf.double()
    is_type = isinstance(leaf, torch.dtype) and leaf.is_floating_point
    return torch.float64 if is_type else leaf


def _settle_ties(wanted: Any, got: Any, sample: Any, at: int) -> None:
    """Orders equal elements as eager does; `at` is the position of the dimension."""
    dim = sample.kwargs.get("dim", sample.args[at] if len(sample.args) > at else -1)
    ours, theirs = (one if isinstance(one, torch.Tensor) else one[1] for one in (got, wanted))
    values = [sample.input.gather(dim, indices) for indices in (ours, theirs)]
    is_twice = ours.sort(dim).values.diff(dim=dim).eq(0).any() if ours.dim() else False
    if torch.equal(*values) and not is_twice:
        ours.copy_(theirs)


def difference(
    wanted: Any, got: Any, arguments: list[Any], exact: Callable[[], list[Any]] | None = None
) -> str:
    """Returns the first difference of two results; empty if there is none.

    Args:
        wanted: of eager.
        got: of a compiled function.
        arguments: of both.
        exact: computes the leaves of the result in double precision.
    """
    wanted, got = pytree.tree_leaves(wanted), pytree.tree_leaves(got)
    if len(wanted) != len(got):
        return f"{len(got)} results, wanted {len(wanted)}"
    found = [_difference(*pair) for pair in zip(wanted, got, strict=True)]
    for at, text in enumerate(found):
        if exact and text.startswith("values") and _is_no_worse(wanted[at], got[at], exact()[at]):
            found[at] = ""
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
    rtol, atol = _tolerances(wanted)
    try:
        torch.testing.assert_close(got, wanted, equal_nan=True, rtol=rtol, atol=atol)
    except AssertionError as error:
        return f"values: {error}"
    return ""


def _tolerances(wanted: torch.Tensor) -> tuple[float, float]:
    return (2e-3, 1e-3) if wanted.dtype == torch.float16 else (2e-4, 2e-5)


def _is_no_worse(wanted: torch.Tensor, got: torch.Tensor, exact: torch.Tensor) -> bool:
    """True if our largest error is within the tolerance, or at most the largest one of eager.

    Errors of elements that overflow in eager alone are not counted.
    """
    if not wanted.is_floating_point() or exact.shape != wanted.shape:
        return False
    rtol, atol = _tolerances(wanted)
    exact = exact.to(wanted.dtype).double()

    def errors(values: torch.Tensor, known: torch.Tensor) -> torch.Tensor:
        values, known = values.double(), known.double()
        error = (values - exact).abs() / (atol + rtol * exact.abs())
        is_known = (values == exact) | (values == known) | (values.isnan() & known.isnan())
        return torch.where(is_known, 0, error.nan_to_num(torch.inf))

    of_eager = errors(wanted, exact)
    accepted = max(1.0, of_eager[of_eager.isfinite()].max().item())
    return errors(got, wanted).max().item() <= accepted


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
    rows = _rows(out)
    decisions = Counter(row[1] for row in rows)
    forms = {kind: sorted({row[0] for row in rows if row[1] == kind}) for kind in decisions}
    print("| | samples | forms |\n| --- | ---: | ---: |")
    for kind, count in decisions.most_common():
        print(f"| {kind} | {count} | {len(forms[kind])} |")
    for kind in ("differs", "pytorch"):
        print(f"\n{kind}:", ", ".join(f"`{name}`" for name in forms.get(kind, [])))


def _rows(out: Path) -> list[list[str]]:
    return [line.split("\t") for line in out.read_text().splitlines()]


def print_page(files: list[Path]) -> None:
    """Prints `docs/pytorch-forms.md`: forms of which a sample runs in PyTorch, and why."""
    print(PAGE)
    reasons: dict[str, str] = {}
    kinds: dict[str, list[str]] = {}
    for file in files:
        rows = _rows(file)
        decisions = Counter(row[1] for row in rows)
        found = {row[0]: _reason(row[3]) for row in rows if row[1] == "pytorch"}
        numbers = [len({row[0] for row in rows}), len(found)]
        numbers += [decisions[one] for one in ("same", "pytorch", "differs")]
        print(f"| {file.stem} |", " | ".join(map(str, numbers)), "|")
        reasons = found | reasons
        for form in found:
            kinds.setdefault(form, []).append(file.stem)
    print("\n| form | types | reason |\n| --- | --- | --- |")
    for form in sorted(reasons):
        print(f"| `{form}` | {', '.join(kinds[form])} | {reasons[form]} |")


PAGE = """# Forms of PyTorch's operators that run in PyTorch

`tools/torch_samples.py` writes this page: three of PyTorch's own samples of each form of its
operators, through `torch.compile(backend="byoc_mlir")`, compared with eager. Random forms are left
out. A form stands below if one of its samples runs in PyTorch, which a warning says.

| type | forms | in PyTorch | samples, same | in PyTorch | different |
| --- | ---: | ---: | ---: | ---: | ---: |"""


def _reason(text: str) -> str:
    """Returns what a warning says, in a few words."""
    operation = re.search(r"\(([\w.]+)\): PyTorch has no form of it in ONNX: No ", text)
    if operation:
        return f"`{operation[1]}` has no form in ONNX"
    text = re.sub(r"^a graph runs in PyTorch: (\d+ node\(s\).*?\): |node )?", "", text)
    text = re.sub(r"(\w*<[^<>]*>)", r"`\1`", text.split(";")[0])
    return textwrap.shorten(text, 110, placeholder=" …")


if __name__ == "__main__":
    main()
