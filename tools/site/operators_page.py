"""The table of ONNX ops and how they are supported."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import onnx
from onnx.defs import OpSchema
from onnx_suite import Expectations, suite_cases
from page import Page

from byoc_mlir.dialects.relay.evaluate.proven import PROVEN
from byoc_mlir.frontend import import_model
from byoc_mlir.frontend.known_ops import has_standard_function
from byoc_mlir.frontend.registry import all_ops, find_op
from byoc_mlir.frontend.string_labels import REWRITTEN

_ROOT = Path(__file__).parents[2]

assert import_model  # the frontend registers the functions of the ops

_TEXT = """\
# ONNX operators

This page is made of the importer's table and the results of ONNX's backend test suite.

- **native**: compiled, by its own function or, marked *body*, by the body that the ONNX standard
  gives the op.
- **net**: runs in the ONNX reference evaluator, behind a warning that names the nodes, unless
  `fallback="forbid"`. *The last resort*, at the end, lists what it takes.
- **no**: refused when the model is compiled, with the name of the node.

The last column counts the cases of the suite in which the op occurs, and how many of them pass. Of
{count} cases {passed} pass, {native} of them without the fallback interpreter. What does not pass
is listed, with the reasons, in `tests/unit/onnx_suite/expectations.toml`;
`python tools/onnx_suite.py` runs all cases.

Inputs and outputs may be sequences (lists of arrays) and optionals (`None` or an array); the model
is compiled for each length. A map may be an input of DictVectorizer and CastMap (a dict), and the
maps of a ZipMap may be an output (a list of dicts). Random ops with a `seed` give the same numbers
in every run, without one others in each. What ops give for zero divisors, NaN and other edges is in
`semantics.md`, and which backend takes which element type in `op-types.md`.
"""


def operators_page() -> Page:
    """Returns the page."""
    expectations = Expectations.read(_ROOT / "tests/unit/onnx_suite/expectations.toml")
    return Page("ONNX operators", "operators.md", _text(expectations))


@dataclass(frozen=True)
class OpRow:
    """Op of the table."""

    domain: str
    name: str
    versions: tuple[int, ...]
    """Versions that can be compiled."""
    others: tuple[int, ...]
    """Versions that cannot be compiled."""
    support: str
    passed: int
    cases: int


def operator_rows(expectations: Expectations) -> list[OpRow]:
    """Returns a row for every op of the ONNX standard, by domain and name."""
    passed, cases = _case_counts(expectations)
    return [
        _row(versions, passed[domain, name], cases[domain, name])
        for (domain, name), versions in _schemas()
    ]


def _text(expectations: Expectations) -> str:
    count = len(suite_cases())
    passed = count - len(expectations.not_passing) - len(expectations.random)
    native = passed - len(expectations.through_net)
    parts = [_TEXT.format(count=count, passed=passed, native=native)]
    for domain, rows in groupby(operator_rows(expectations), lambda row: row.domain):
        listed = list(rows)
        native = sum(row.support.startswith("native") for row in listed)
        title = domain or "ai.onnx"
        parts.append(f"\n## {title}\n\n{native} of {len(listed)} ops are native.\n")
        parts.append("| op | versions | support | cases passed |\n| --- | --- | --- | --- |")
        parts += map(_line, listed)
    parts += [_VENDOR_TEXT, "| op | versions |\n| --- | --- |", *_vendor_lines()]
    parts += [_NET_TEXT, "| op | from opset |\n| --- | --- |"]
    parts += [
        f"| {f'{domain}.' * bool(domain)}{name} | {form.since} |"
        for (domain, name), form in sorted(PROVEN.items())
    ]
    return "\n".join(parts) + "\n"


_VENDOR = "com.microsoft"
_VENDOR_TEXT = f"""
## {_VENDOR}

Ops that ONNX Runtime's optimisers and exporters write; ONNX has no schema and no cases for them.
Each is made of `relay` ops when the model is imported, so the host and every backend take from it
what they take from those ops, for their element types. What is not supported of attributes and
inputs is refused with the node, what was found and what is accepted. `SimplifiedLayerNormalization`
of the default domain is known, too. To add ops of your own see `custom-ops.md`.
"""


_NET_TEXT = """
## The last resort

ONNX's reference evaluator runs what native code cannot hold: strings, sequences of strings, and
Fourier transforms that are too long for a matrix. It takes the ops below and no others. A test
compares each of them with ONNX Runtime, in every version.

Every other form without native code is refused when the model is compiled. The error names the
node, says what was found, and what is accepted. Refused are, for example:

- of strings: Loop, Scan, OneHot, Pad and Scatter, and Unique with an axis or unsorted;
- casts of strings to types that are not float32, float64, int32 or int64;
- StringNormalizer with a `locale` that has a case of its own (`C`, `tr`, `az`, `lt`);
- functions of the model with an `overload`, where they work on strings.
"""


def _vendor_lines() -> Iterator[str]:
    found = [op for op in all_ops() if op.domain == _VENDOR]
    for name, versions in groupby(found, lambda op: op.op_type):
        yield f"| {name} | {', '.join(str(op.since) for op in versions)} |"


def _schemas() -> Iterator[tuple[tuple[str, str], list[OpSchema]]]:
    found: defaultdict[tuple[str, str], list[OpSchema]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        if not schema.deprecated:
            found[schema.domain, schema.name].append(schema)
    for key in sorted(found):
        yield key, sorted(found[key], key=lambda schema: schema.since_version)


def _case_counts(expectations: Expectations) -> tuple[Counter[tuple[str, str]], ...]:
    passed: Counter[tuple[str, str]] = Counter()
    cases: Counter[tuple[str, str]] = Counter()
    for case in suite_cases():
        ops = case.ops()
        cases.update(ops)
        if not expectations.may_fail(case.name):
            passed.update(ops)
    return passed, cases


def _row(versions: Sequence[OpSchema], passed: int, cases: int) -> OpRow:
    compiled = tuple(schema.since_version for schema in versions if _is_native(schema))
    others = tuple(schema.since_version for schema in versions if not _is_native(schema))
    newest = versions[-1]
    return OpRow(newest.domain, newest.name, compiled, others, _support(newest), passed, cases)


def _is_native(schema: OpSchema) -> bool:
    return _has_importer(schema) or has_standard_function(schema)


def _has_importer(schema: OpSchema) -> bool:
    if schema.domain == "ai.onnx.ml" and (schema.name, schema.since_version) in REWRITTEN:
        return True
    return find_op(schema.domain, schema.name, schema.since_version) is not None


def _support(schema: OpSchema) -> str:
    if _has_importer(schema):
        return "native"
    if has_standard_function(schema):
        return "native (body)"
    form = PROVEN.get((schema.domain, schema.name))
    return "no" if form is None or schema.since_version < form.since else "net"


def _line(row: OpRow) -> str:
    versions = ", ".join(map(str, row.versions))
    others = f"{'; not ' if versions else 'not '}{', '.join(map(str, row.others))}"
    named = versions + (others if row.others else "")
    counts = f"{row.passed} of {row.cases}" if row.cases else ""
    return f"| {row.name} | {named} | {row.support} | {counts} |"
