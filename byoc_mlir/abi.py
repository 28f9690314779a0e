"""What native code, its callers and the passes agree on: each name and each number once.

docs/dev-notes/architecture.md, "Native code", says what the functions do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Precision: TypeAlias = Literal["f32", "bf16", "bf16x3"]
"""Element types that products may be computed in; docs/precision.md describes them."""

SLOT_BYTES = 8
"""The size of a slot of `state` and of `context`, and of a pointer."""

ARENA_ALIGNMENT = 64
"""Bytes; of the arena, of each value and workspace in it, and of weights."""


@dataclass(frozen=True)
class EntryPoint:
    """A function of a compiled model, or a hook of a region. All parameters are pointers."""

    name: str
    parameters: tuple[str, ...]
    returns_status: bool = True

    @property
    def symbol(self) -> str:
        """The model's function: `byoc_load`."""
        return f"byoc_{self.name}"

    def hook(self, region: str) -> str:
        """The function of a region, where it has one: `dnnl_main_0_load`."""
        return f"{region}_{self.name}"


LOAD = EntryPoint("load", ("state",))
OPEN = EntryPoint("open", ("state", "context", "workspace"))
RUN = EntryPoint("run", ("state", "context", "arena", "inputs", "outputs"))
CLOSE = EntryPoint("close", ("state", "context"), returns_status=False)
UNLOAD = EntryPoint("unload", ("state",), returns_status=False)

HOOKS = (LOAD, OPEN, CLOSE, UNLOAD)
"""Those that a region may define; the model's own function calls them all."""

UNDONE_BY = {LOAD: UNLOAD, OPEN: CLOSE}
"""The hook that undoes another one, of regions before one whose hook failed."""

ENTRY_POINTS = (LOAD, OPEN, RUN, CLOSE, UNLOAD)

REGION_SHIFT = 32
"""A model's status, an `i64`, carries the number of a region above these bits, and in them the
`i32` that the region returned."""


def status_origin(region: int) -> int:
    """Returns what is added to the status of a region, which counts from 1; 0 is the host."""
    return region << REGION_SHIFT


def split_status(status: int) -> tuple[int, int]:
    """The region that failed, from 1 (0: the host function), and what it returned."""
    sign = 1 << (REGION_SHIFT - 1)
    return status >> REGION_SHIFT, (status + sign) % (2 * sign) - sign


FOUND_SLOT = 0
"""The slot of a context for the value that a check of the host function refused. The reason in the
status is the number of the check, from 1; without checks there is no such slot."""


THREADS_SYMBOL = "byoc_threads"
"""The `i32` that says how many OpenMP threads a run uses."""


FIND_PACKED, KEEP_PACKED, FREE_PACKED = "byoc_find_packed", "byoc_keep_packed", "byoc_free_packed"
"""What code may call when it is loaded, to share copies of constants in other layouts with the
other programs of the process:

- `ptr find(source, layout, same)`: a copy of the constant at `source` in a layout for which
  `i32 same(layout, other)` is not 0, or null. Who gets one frees it.
- `void keep(copy, bytes, source, layout, same, clone, destroy)`: offers a new copy, of memory of
  `aligned_alloc`. `i32 clone(other*, layout)` and `destroy(other)` are for a layout to keep.
- `void free(copy)`: frees the copy, if nobody else has it.
"""

RUNTIME_FUNCTIONS = (FIND_PACKED, KEEP_PACKED, FREE_PACKED)
"""Functions that whoever loads object code defines."""


def weight_symbol(digest: str) -> str:
    """The external symbol whose address is the first byte of a stored constant."""
    return f"byoc_weight_{digest}"


NAME = "byoc.name"
"""On an argument or a result of @main: its name in the model."""
COMPILER = "byoc.compiler"
"""On a function: the backend that runs it. Its body is that backend's alone."""
WORKSPACE = "byoc.workspace"
"""On the declaration of a region: bytes of arena that a call needs beside its arguments."""
WORKSPACE_OFFSET = "byoc.workspace_offset"
"""On the declaration of a region, after `plan-buffers`: where in the arena they are."""
ARENA_BYTES = "byoc.arena_bytes"
"""On the host function, after `plan-buffers`, and then on the module: the size of the arena."""
ARENA_SIZE = "byoc.arena_size"
"""Beside it, where sizes are symbolic: the size of the arena. The other one is for hints."""
STATE_SLOTS = "byoc.state_slots"
CONTEXT_SLOTS = "byoc.context_slots"
"""Both on the declaration of a region, and, as totals, on the module."""
HOOKS_DEFINED = "byoc.hooks"
"""On the declaration of a region: the names of the hooks that it defines."""
KERNEL = "byoc.kernel"
"""On a function: it is an outlined loop nest of the host."""
BINDS = "byoc.binds"
"""On a function: the symbol whose size is the number that its first argument has."""
PREFER_NO_GATHER = "byoc.prefer_no_gather"
"""On a function: its loads are not put together to gathers."""
VECTORISED = "byoc.vectorised"
"""On a function: it is written in vectors and needs none of LLVM's optimisations."""
WEIGHT = "byoc.weight"
"""On a global: the handle of the constant that it stands for."""
STEP = "byoc.step"
"""On a call in a region's function `@R`: it is a step that a profile tells apart. A dictionary with
`implementation`, what runs, and `layout`. The call's location says for which ONNX nodes."""
STEPS = "byoc.steps"
"""On the module, after `profile-steps`: what each step is, in the order of its slots."""
ALIASES = "byoc.aliases"
"""On the host function, after `bufferize`, and then on the module: outputs that may be in the
memory of an input, as pairs of numbers, `[output, input]`."""
CHECKS = "byoc.checks"
"""On the module, where values are checked while it runs: a dictionary for each check, in the order
of their numbers: `node`, `what`, `least`, `most`."""
CONTEXT_OFFSET = "byoc.context_offset"
"""On a region's function `@R` in the joined module: the first of its context slots."""
MAY_ALIAS = "byoc.may_alias"
"""On a function: its pointers may point at the same memory."""
