"""Search for the pass, pattern or backend that causes a difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from byoc_mlir.backends import Target, get_backend
from byoc_mlir.compiler.debugging.compare import Tolerance
from byoc_mlir.compiler.debugging.verify import Examined
from byoc_mlir.compiler.disable import OPTIONAL_PASSES
from byoc_mlir.compiler.execution.model import compile_model
from byoc_mlir.compiler.options import CompileOptions
from byoc_mlir.compiler.request import Request
from byoc_mlir.compiler.user_passes import names_of
from byoc_mlir.errors import ByocError
from byoc_mlir.frontend.value import Array
from byoc_mlir.runtime.verification import Bisection, Kind


def bisect(examined: Examined) -> Bisection:
    """Disables patterns, then passes, then backends, and halves the set of names that causes a
    difference.

    Each step compiles the smallest part that differs, if one was found, else the model.
    """
    verification = examined.verification
    if verification.agrees:
        return Bisection(verification)
    subject = _Subject.of(examined)
    tried = _Tried(subject)
    for kind, names in subject.candidates().items():
        if names and tried.goes_away(names):
            return Bisection(verification, kind, fewest(names, tried.goes_away), tried.count)
    return Bisection(verification, tried=tried.count)


def fewest(
    names: Sequence[str],
    goes_away: Callable[[Sequence[str]], bool],
    besides: Sequence[str] = (),
) -> tuple[str, ...]:
    """Returns a small subset of the names that suffices to remove the difference.

    Args:
        names: names that, disabled together, remove the difference.
        goes_away: function that returns True if disabling the given names removes the difference.
        besides: names that are always disabled in addition.
    """
    if len(names) == 1:
        return tuple(names)
    halves = names[: len(names) // 2], names[len(names) // 2 :]
    for half in halves:
        if goes_away((*besides, *half)):
            return fewest(half, goes_away, besides)
    first = fewest(halves[0], goes_away, (*besides, *halves[1]))
    return (*first, *fewest(halves[1], goes_away, (*besides, *first)))


@dataclass(frozen=True)
class _Subject:
    """Request, inputs and expected outputs of the repeated compilations."""

    request: Request
    inputs: Mapping[str, Any]
    wanted: Mapping[str, Array]
    tolerance: Tolerance

    @staticmethod
    def of(examined: Examined) -> _Subject:
        part, comparer = examined.verification.part, examined.comparer
        request = replace(examined.request, fallback="allow", profile=False, dump_ir=None)
        if part is None:
            wanted = {
                name: comparer.values[name]
                for name in comparer.whole.outputs
                if name in comparer.values
            }
            return _Subject(request, examined.inputs, wanted, comparer.tolerance)
        request = replace(request, model=part.model, prune="off")
        if part.is_on_host:
            request = replace(request, targets=(), backend_options={})
        return _Subject(request, part.inputs, part.expected, comparer.tolerance)

    def candidates(self) -> Mapping[Kind, Sequence[str]]:
        """Returns the names that can be disabled: patterns with matches, passes and backends."""
        targets = CompileOptions.of(self.request).targets
        backends = [get_backend(target) for target in targets]
        passes = [one.name for backend in backends for one in backend.module_passes()]
        with compile_model(self.request) as executable:
            executable.run(self.inputs)
            composites = list(executable.report().composites)
        return {
            "pattern": composites,
            "pass": [*names_of(self.request.passes), *passes, *OPTIONAL_PASSES],
            "backend": [Target.parse(target).name for target in targets],
        }

    def is_right_without(self, names: Sequence[str]) -> bool:
        """True if the outputs are right with the given names disabled, in addition to the request's
        names.
        """
        request = replace(self.request, disable=(*self.request.disable, *names))
        try:
            with compile_model(request) as executable:
                found = executable.run(self.inputs)
        except ByocError:  # one of them is needed here
            return False
        return all(self.tolerance.accepts(found[name], want) for name, want in self.wanted.items())


@dataclass
class _Tried:
    """Cache of results; each set of names is tried once."""

    subject: _Subject
    known: dict[frozenset[str], bool] = field(default_factory=dict[frozenset[str], bool])

    @property
    def count(self) -> int:
        return len(self.known)

    def goes_away(self, names: Sequence[str]) -> bool:
        key = frozenset(names)
        if key not in self.known:
            self.known[key] = self.subject.is_right_without(sorted(key))
        return self.known[key]
