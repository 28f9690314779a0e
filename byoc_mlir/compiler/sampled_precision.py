"""Choice of the matmuls and convolutions that need `f32`, from sample inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from byoc_mlir.boundary import check_argument
from byoc_mlir.comparison import Array, distance, is_float
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.partition.report import HEAVY_OPS
from byoc_mlir.compiler.request import Request
from byoc_mlir.errors import ByocError

Sample: TypeAlias = Mapping[str, Any]
"""Inputs by name."""

Products: TypeAlias = tuple[str, ...]
"""Nodes in the order in which they run."""

ERROR = 0.005
"""Accepted error of an output: root mean square, relative to the output's."""

_MOST_RUNS = 24
"""Maximum number of compilations that measure the error of a group of matmuls and convolutions."""


def products_to_keep(request: Request, samples: Sequence[Sample]) -> Products:
    """Returns the nodes whose matmuls and convolutions must stay in `f32`.

    With these nodes in `f32`, the error of the outputs is at most `ERROR`. The model is compiled up
    to some `24` times.

    Args:
        request: request with the reduced precision.
        samples: typical inputs of the model, at least one.

    Raises:
        ByocError: the arguments are not as documented, or the model cannot be compiled or run.
    """
    _check(request, samples)
    exact, _ = _answers(replace(request, precision="f32"), samples)
    mixed, products = _answers(request, samples)
    if not products:
        return ()

    def error_of(group: Products) -> float:
        others = [name for name in products if name not in group]
        answers, _ = _answers(replace(request, exact=(*request.exact, *others)), samples)
        return worst_error(answers, exact)

    return chosen(products, worst_error(mixed, exact), error_of)


def chosen(
    products: Products,
    error: float,
    error_of: Callable[[Products], float],
    accepted: float = ERROR,
    most_runs: int = _MOST_RUNS,
) -> Products:
    """Returns a small set of nodes to keep in `f32`, so that the error of the remaining nodes is
    accepted.

    Errors of groups are assumed to be independent: their squares add up. Groups are accepted in the
    order of their squared error per node. The first refused group is halved, until only single
    nodes are refused, or enough runs were made.

    Args:
        error: error if all nodes have reduced precision.
        error_of: function that returns the error if only the given nodes have reduced precision.
    """
    groups = [_Group(error, products)]
    for _ in range(most_runs // 2):
        taken = _accepted(groups, accepted)
        refused = [group for group in groups if group not in taken and len(group.products) > 1]
        if not refused:
            break
        worst = min(refused)
        groups.remove(worst)
        groups += [_Group(error_of(half), half) for half in worst.halves()]
    taken = sorted(_accepted(groups, accepted))
    while len(taken) > 1 and error_of(_members(taken)) > accepted:
        taken.pop()
    rounded = set(_members(taken))
    return tuple(name for name in products if name not in rounded)


@dataclass(frozen=True)
class _Group:
    error: float
    """Error that these nodes add if all others are exact."""
    products: Products

    def __lt__(self, other: _Group) -> bool:
        return self.square_of_each < other.square_of_each

    @property
    def square_of_each(self) -> float:
        """Returns the squared error per node, assuming equal shares."""
        return self.error**2 / len(self.products)

    def halves(self) -> tuple[Products, Products]:
        """Splits the group, which has more than one node, into two halves."""
        middle = len(self.products) // 2
        return self.products[:middle], self.products[middle:]


def _accepted(groups: Sequence[_Group], accepted: float) -> list[_Group]:
    """Returns the groups, in ascending order of error per node, whose joint error is accepted."""
    taken: list[_Group] = []
    for group in sorted(groups):
        if math.hypot(group.error, *(one.error for one in taken)) <= accepted:
            taken.append(group)
    return taken


def _members(groups: Sequence[_Group]) -> Products:
    return tuple(name for group in groups for name in group.products)


def worst_error(
    found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]
) -> float:
    """Returns the largest relative error of an output over all samples, as root mean square.

    For outputs that are no floats, the error of an element that differs is 1.
    """
    names = dict.fromkeys(name for answer in wanted for name in answer)
    return max((_error_of(name, found, wanted) for name in names), default=0.0)


def _error_of(
    name: str, found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]
) -> float:
    apart = size = 0.0
    for got, want in zip((one[name] for one in found), (one[name] for one in wanted), strict=True):
        if not is_float(want.dtype):
            apart, size = apart + float(np.count_nonzero(got != want)), size + want.size
            continue
        wide = want.astype(np.float64)
        apart += float(np.square(distance(got, want)).sum())
        size += float(np.square(wide[np.isfinite(wide)]).sum())
    return math.sqrt(apart / size) if apart and size else apart


def _answers(
    request: Request, samples: Sequence[Sample]
) -> tuple[Sequence[Mapping[str, Array]], Products]:
    """Returns the array outputs for each sample, and the nodes with lower precision than `f32`."""
    with compile_model(request, None) as executable:
        answers = [
            {name: one for name, one in executable.run(sample).items() if _is_array(one)}
            for sample in samples
        ]
        rows = [row for row in executable.report() if row.op_type in HEAVY_OPS]
    return answers, tuple(row.node for row in rows if row.precision == request.precision)


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _check(request: Request, samples: Sequence[Sample]) -> None:
    if request.precision == "f32":
        raise ByocError("samples are given with precision='f32', in which nothing is rounded")
    accepted = "a sequence of dictionaries, each the inputs of a run, as [{'x': array}]"
    check_argument("samples", samples, Sequence, accepted)
    if not samples:
        raise ByocError(f"samples are none, accepted is {accepted}")
    for sample in samples:
        check_argument("samples", sample, Mapping, accepted)
