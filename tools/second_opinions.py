"""Compares nodes of all ops with ONNX Runtime, and asks a third judge where the two differ.

    python tools/second_opinions.py --samples 6 --out opinions.tsv
    python tools/second_opinions.py --table opinions.tsv > docs/dev-notes/second-opinions.md

The third judge is ONNX's reference evaluator. A row is a node: op, opset, style of the values,
judgement, difference. A run goes on where the last one with the same file stopped. Random ops have
no values to compare.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import onnx
from byoc_mlir_fuzz.case import Feeds
from byoc_mlir_fuzz.oracles import Answer, as_arrays, differences, onnxruntime_answer
from byoc_mlir_fuzz.oracles import reference_answer as reference

import byoc_mlir
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend.files.check import MAX_OPSET
from byoc_mlir.testing.samples.onnx_nodes.graph import RandomGraph
from byoc_mlir.testing.samples.onnx_nodes.recipes import add_node, importable_ops
from byoc_mlir.testing.samples.onnx_nodes.tensor import DOMAINS, ML
from byoc_mlir.testing.samples.onnx_nodes.values import Style

_RANDOM = re.compile("Random|Bernoulli|Multinomial|Dropout")
_STYLES: tuple[Style, ...] = ("plain", "extreme", "plain", "limits")

JUDGEMENTS = {
    "same": "as ONNX Runtime",
    "third": "ONNX Runtime differs, the reference evaluator agrees with us",
    "theirs": "both others agree with each other, not with us",
    "open": "all that answer differ",
    "only": "ONNX Runtime refuses, the reference evaluator agrees with us",
    "reference": "ONNX Runtime refuses, the reference evaluator differs",
    "alone": "nobody else answers",
    "refused": "we refuse what another runs",
}


@dataclass(frozen=True)
class Opinion:
    """Opinion about a node."""

    op: str
    opset: int
    style: str
    judgement: str
    difference: str = ""


def main() -> None:
    """Judges nodes, or prints the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=6, help="nodes of each op")
    parser.add_argument("--only", default="", help="a regular expression of ops")
    parser.add_argument("--out", type=Path, default=Path("opinions.tsv"))
    parser.add_argument("--table", type=Path, help="prints the page of this file")
    args = parser.parse_args()
    if args.table:
        sys.stdout.write("\n".join(page(_read(args.table))) + "\n")
        return
    known = Counter(one.op for one in _read(args.out))
    for domain, op_type in importable_ops():
        op = f"{domain}.{op_type}".lstrip(".")
        if _RANDOM.search(op) or not re.search(args.only, op):
            continue
        for number in range(known[op], args.samples):
            opinion = judged(domain, op_type, number)
            with args.out.open("a") as file:
                fields = (opinion.op, opinion.opset, opinion.style, opinion.judgement)
                text = " ".join(opinion.difference.split())[:300]
                file.write("\t".join(map(str, (*fields, text))) + "\n")


def _read(path: Path) -> list[Opinion]:
    if not path.exists():
        return []
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return [Opinion(row[0], int(row[1]), *row[2:]) for row in rows]


def judged(domain: str, op_type: str, number: int) -> Opinion:
    """Returns the opinion about a random node of an op."""
    rng = Random(f"opinion {domain} {op_type} {number}")
    style = _STYLES[number % len(_STYLES)]
    op = f"{domain}.{op_type}".lstrip(".")
    for opset in (rng.choice(_OPSETS), MAX_OPSET, 9, rng.randint(7, MAX_OPSET)):
        versions = {**DOMAINS, ML: 3 if opset < 20 else 5}
        graph = RandomGraph(rng, opset, style, domains=versions)
        if not add_node(graph, op_type, domain):
            continue
        model = graph.model()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            judgement, difference = _judged(model, graph.feeds)
        return Opinion(op, opset, style, judgement, difference)
    return Opinion(op, 0, style, "alone", "there is no node of it")


_OPSETS = (*range(9, 22), *(13, 17, 21) * 3)
"""Versions that ONNX Runtime has, the usual ones more often."""


def _judged(model: onnx.ModelProto, feeds: Feeds) -> tuple[str, str]:
    ours, refusal = _asked(_ours, model, feeds)
    theirs, _ = _asked(onnxruntime_answer, model, feeds)
    if ours is not None and theirs is not None and not differences(ours, theirs):
        return "same", ""
    third, _ = _asked(reference, model, feeds)
    if ours is None:
        return ("alone" if theirs is None and third is None else "refused"), refusal
    if theirs is None:
        return _without_runtime(ours, third)
    first = "ONNX Runtime " + _first(ours, theirs)
    if third is None:
        return "open", first
    if not differences(ours, third):
        return "third", first
    if not differences(theirs, third):
        return "theirs", first
    return "open", f"{first}; the reference {_first(ours, third)}"


def _without_runtime(ours: Answer, third: Answer | None) -> tuple[str, str]:
    if third is None:
        return "alone", ""
    found = differences(ours, third)
    return ("reference", "the reference " + _first(ours, third)) if found else ("only", "")


def _ours(model: onnx.ModelProto, feeds: Feeds) -> Answer:
    with byoc_mlir.compile(model, (), threads=1, cache=False, fallback="allow") as executable:
        return {name: np.array(value) for name, value in as_arrays(executable.run(feeds)).items()}


def _asked(
    judge: Callable[[onnx.ModelProto, Feeds], Answer], model: onnx.ModelProto, feeds: Feeds
) -> tuple[Answer | None, str]:
    """Returns the answer of a judge, or `None` and its refusal."""
    try:
        return judge(model, feeds), ""
    except Exception as error:  # judges raise what they like; of us only typed errors count
        if judge is _ours and not isinstance(error, ByocError):
            raise
        return None, f"{type(error).__name__}: {error}"


def _first(got: Answer, want: Answer) -> str:
    return next(iter(differences(got, want).values()))


def page(opinions: list[Opinion]) -> Iterator[str]:
    """Yields the lines of the page."""
    counts: Mapping[str, Counter[str]] = defaultdict(Counter)
    for one in opinions:
        counts[one.op][one.judgement] += 1
    total = Counter(one.judgement for one in opinions)
    yield from _HEAD.format(nodes=len(opinions), ops=len(counts)).splitlines()
    yield from ("", "| judgement | meaning | nodes |", "| --- | --- | ---: |")
    yield from (f"| {one} | {text} | {total[one]} |" for one, text in JUDGEMENTS.items())
    names = ("same", "third", "theirs", "open", "only", "reference", "refused")
    yield from ("", f"| op | {' | '.join(names)} | why |")
    yield f"| --- | {'---: | ' * len(names)}--- |"
    for op, its in sorted(counts.items()):
        if its.keys() <= {"same", "alone", "only"}:
            continue
        numbers = " | ".join(str(its[name] or "") for name in names)
        yield f"| `{op}` | {numbers} | {WHY.get(op, _example(op, opinions))} |"


_NAN = "NaN is larger than all numbers for us, ONNX Runtime skips it"
_WINDOW = "a window larger than the padded data, which we refuse"
_WRAPS = "sums of integers wrap, ONNX Runtime's are sums of floats"
_OPTIONAL = "the reference evaluator adds an axis"
_BFLOAT16 = "ONNX up to 24 has no sequences and optionals of `bfloat16`"

WHY: Mapping[str, str] = {
    "ArgMin": "the index of the first NaN, ONNX Runtime skips NaN",
    "BatchNormalization": "ONNX Runtime multiplies the mean by the scale, which makes NaN",
    "BlackmanWindow": "cosines are rounded differently where the window is 0",
    "Conv": f"sums of the largest floats become infinite in another order; {_WINDOW}",
    "ConvInteger": _WINDOW,
    "DFT": "infinities times sines that are 0",
    "GRU": "ONNX Runtime loses NaN if there are biases",
    "GlobalMaxPool": f"{_NAN}; the reference evaluator loses an axis",
    "Hardmax": "the first NaN is the largest element, ONNX Runtime skips it",
    "InstanceNormalization": "ONNX Runtime multiplies the mean by the scale, which makes NaN",
    "LSTM": "the reference evaluator ignores lengths and peepholes",
    "LpPool": "the reference evaluator loses NaN",
    "MaxRoiPool": _NAN,
    "MaxUnpool": "as MaxPool: NaN, and windows larger than the data",
    "Optional": f"{_OPTIONAL}; {_BFLOAT16}",
    "OptionalGetElement": _OPTIONAL,
    "Pow": "of integers, the exact power in wrapped arithmetic; ONNX Runtime's is a float's",
    "QLinearConv": _WINDOW,
    "QLinearMatMul": "the reference evaluator rounds in double precision",
    "ReduceL1": _WRAPS,
    "ReduceL2": "squares of integers are summed exactly, the reference evaluator's wrap",
    "ReduceMean": "of integers, the wrapped sum is divided; the others divide floats",
    "ReduceSum": _WRAPS,
    "Resize": "the reference evaluator multiplies infinities by 0",
    "RoiAlign": _NAN,
    "SequenceLength": _BFLOAT16,
    "Shrink": "integers wrap, ONNX Runtime computes with floats",
    "ai.onnx.ml.FeatureVectorizer": "inputs that are not as wide as `inputdimensions` says",
    "ai.onnx.ml.LinearRegressor": "the reference evaluator needs intercepts",
    "ai.onnx.ml.Normalizer": _NAN,
    "com.microsoft.FusedConv": _WINDOW,
}
"""Reasons of differences, by op; others show an example."""


def _example(op: str, opinions: list[Opinion]) -> str:
    texts = [one.difference for one in opinions if one.op == op and one.judgement != "same"]
    return next(
        (text.replace("|", "/")[:120] for text in texts if text), "ONNX Runtime has no such node"
    )


_HEAD = """# Second opinions

For those who change what an op computes. The page lists the ops whose results are not always those
of ONNX Runtime, with the judgement of ONNX's reference evaluator, and the reason. (4 minutes)

`tools/second_opinions.py` writes it: {nodes} random nodes of {ops} ops, of all opsets, half of them
with infinities, NaN or the largest values. Each reason has a test in
`tests/unit/fuzz/test_second_opinions.py`, with a third judge: PyTorch, NumPy, or a result by hand.
[Semantics](../semantics.md) has what we define where ONNX does not."""


if __name__ == "__main__":
    main()
