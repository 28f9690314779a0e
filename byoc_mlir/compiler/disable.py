"""Names that `compile(disable=…)` accepts: optional passes, patterns and backends."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from byoc_mlir.backends import Backend, backend_names, get_backend
from byoc_mlir.errors import ByocError
from byoc_mlir.names import meant

OPTIONAL_PASSES = (
    "widen-16-bit-floats",
    "unfold-transposed-convolutions",
    "fake-quantization-to-integer",
    "unsigned-bytes",
    "fold-constants",
    "simplify",
    "fold-batch-norm",
    "merge-idempotent-ops",
    "drop-unused-functions",
    "merge-composite",
    "to-mixed-precision",
    "split-products",
    "merge-compiler-regions",
    "limit-weight-growth",
    "round-recurrent-weights",
    "merge-equal-ops",
    "share-layers",
    "convolutions-to-float",
    "lower-integer-products",
    "widen-products",
    "decompose-transposed-convolutions",
    "lower-softmaxes",
    "choose-convolution-algorithms",
    "keep-channels-last",
    "fuse-elementwise",
    "pack-weights",
    "hoist-device-ops",
    "outline-device-chains",
    "choose-schedules",
    "avoid-gathers",
    "mark-cold-functions",
    "mark-vectorised-functions",
)
"""Passes that only improve a program, in the order in which they run."""

_LATER = "later passes accept no other form"

REQUIRED_PASSES: Mapping[str, str] = {
    "convert-tensors-to-relay": "it runs where a module has such ops, which nothing else lowers",
    "decompose-qnn": _LATER,
    "partition-for": "name the backends",
    "annotate-target": "name the backends",
    "partition-graph": "name the backends",
    "inline-partitions": "it runs where a region goes back to the host",
    "estimate-regions": "prune='off' requests no estimates",
    "prune-regions": "prune='off' keeps all regions",
    "specialise-dims": "a model with symbolic dimensions keeps them without it",
    "allow-tf32": "precision='f32' does without it",
    "profile-steps": "profile=False disables it",
    "check-legal": "it changes nothing",
    "place-copies": "a device reads its own memory only",
    "place-waits": "without it, results are read before they exist",
    **dict.fromkeys(
        (
            "add-entry-points",
            "bind-sizes",
            "bufferize",
            "convert-linalg-to-loops",
            "convert-relay-to-linalg",
            "convert-to-llvm",
            "expand-math",
            "lower-convolutions",
            "lower-scf-to-cf",
            "lower-small-types",
            "outline-kernels",
            "outline-parallel",
            "plan-buffers",
        ),
        _LATER,
    ),
}
"""Passes that every program needs, with the reason."""


def check_disabled(
    names: Sequence[str], targets: Sequence[str], passes: Sequence[str] = ()
) -> None:
    """Refuses names that cannot be disabled.

    Args:
        targets: targets with their options, on which patterns and passes may depend.
        passes: passes of the user.

    Raises:
        ByocError: a name is unknown, or is the name of a required pass.
    """
    if not names:
        return
    backends = list(map(get_backend, (*backend_names(), *targets)))
    named = (name for one in backends for name in _names(one))
    known = frozenset((*OPTIONAL_PASSES, *passes, *named))
    required = {**REQUIRED_PASSES, **_required_by(backends)}
    for name in names:
        if name in known:
            continue
        if name in required:
            raise ByocError(f"the pass '{name}' cannot be disabled: {required[name]}")
        guess = meant(name, known | required.keys()) or (
            f"; passes that can be disabled are {', '.join(OPTIONAL_PASSES)}; backends are"
            f" {', '.join(backend_names())}; patterns have names as in `byoc report`"
        )
        raise ByocError(f"disable names '{name}', which is no pass, pattern or backend{guess}")


def _names(backend: Backend) -> Iterator[str]:
    """Yields the names of a backend that can be disabled: itself, patterns, and module passes."""
    yield backend.name
    yield from (row.name for row in backend.patterns())
    yield from (pass_.name for pass_ in backend.module_passes())


def _required_by(backends: Sequence[Backend]) -> dict[str, str]:
    """Returns the passes that a backend runs on its regions; each has the reason why it cannot be
    disabled.
    """
    return {
        name: f"backend '{backend.name}' needs it for its regions; you can disable the backend"
        for backend in backends
        for name in (*backend.passes(), *(pass_.name for pass_ in backend.region_passes()))
    }
