"""The ABI between native code, its callers and the passes: each name and each number once.

docs/dev-notes/architecture.md, "Native code", describes the functions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Precision: TypeAlias = Literal["f32", "bf16", "bf16x3", "tf32", "f16"]
"""Element types in which matmuls and convolutions may be computed; see docs/precision.md."""

SLOT_BYTES = 8
"""Bytes of a slot of `state` and of `context`, and of a pointer."""

ARENA_ALIGNMENT = 64
"""Alignment of the arena, of each value and workspace in it, and of weights, in bytes."""


@dataclass(frozen=True)
class EntryPoint:
    """A function of a compiled model, or a hook of a region. All parameters are pointers."""

    name: str
    parameters: tuple[str, ...]
    returns_status: bool = True

    @property
    def symbol(self) -> str:
        """Returns the symbol of the model's function: `byoc_load`."""
        return f"byoc_{self.name}"

    def hook(self, region: str) -> str:
        """Returns the symbol of a region's hook: `dnnl_main_0_load`."""
        return f"{region}_{self.name}"


LOAD = EntryPoint("load", ("state",))
OPEN = EntryPoint("open", ("state", "context", "workspace"))
RUN = EntryPoint("run", ("state", "context", "arena", "inputs", "outputs"))
CLOSE = EntryPoint("close", ("state", "context"), returns_status=False)
UNLOAD = EntryPoint("unload", ("state",), returns_status=False)

HOOKS = (LOAD, OPEN, CLOSE, UNLOAD)
"""Hooks that a region may define; the model's own function calls them all."""

UNDONE_BY = {LOAD: UNLOAD, OPEN: CLOSE}
"""Hook that undoes another one, for the regions before one whose hook failed."""

ENTRY_POINTS = (LOAD, OPEN, RUN, CLOSE, UNLOAD)

REGION_SHIFT = 32
"""Position of the region's number in a model's status, an `i64`. The bits below hold the `i32` that
the region returned.
"""


def status_origin(region: int) -> int:
    """Returns the offset for the status of a region, which counts from 1; 0 is the host."""
    return region << REGION_SHIFT


def split_status(status: int) -> tuple[int, int]:
    """Returns the number of the region that failed, from 1 (0 is the host), and its status."""
    sign = 1 << (REGION_SHIFT - 1)
    return status >> REGION_SHIFT, (status + sign) % (2 * sign) - sign


FOUND_SLOT = 0
"""Slot of a context for the value that a check of the host function refused. The status then holds
the number of the check, from 1. Without checks, there is no such slot.
"""


THREADS_SYMBOL = "byoc_threads"
"""Symbol of the `i32` that holds the number of OpenMP threads of a run."""

RUNS_SYMBOL = "byoc_runs"
"""Symbol of two `i64` of the process: the number of runs under way that have several OpenMP
threads, and a number that is not 0 once two have overlapped, or while the machine is overloaded."""

PROCESS_SYMBOLS = (THREADS_SYMBOL, RUNS_SYMBOL)
"""Variables that the loader of object code defines."""


FIND_PACKED, KEEP_PACKED, FREE_PACKED = "byoc_find_packed", "byoc_keep_packed", "byoc_free_packed"
"""Functions that code may call at load time, to share packed copies of constants with other
programs:

- `ptr find(source, layout, same)`: returns a copy of the constant at `source`, or null. The copy
  has a layout for which `i32 same(layout, other)` is not 0. The caller frees it.
- `void keep(copy, bytes, source, layout, same, clone, destroy)`: offers a new copy, in memory of
  `aligned_alloc`. `i32 clone(other*, layout)` and `destroy(other)` manage the layout to keep.
- `void free(copy)`: frees the copy, if no one else uses it.
"""

RUNTIME_FUNCTIONS = (FIND_PACKED, KEEP_PACKED, FREE_PACKED)
"""Functions that the loader of object code defines."""


def weight_symbol(digest: str) -> str:
    """Returns the external symbol whose address is the first byte of a stored constant."""
    return f"byoc_weight_{digest}"


HOST_SPACE = "host"
"""Memory space of the host; that of a device has the device's name."""

START = "start"
"""Suffix of the function of a device's region: `npu_main_0_start` enqueues and returns."""


def region_function(region: str, space: str) -> str:
    """Returns the symbol of a region's function, `@R`, or `@R_start` on a device."""
    return region if space == HOST_SPACE else f"{region}_{START}"


def device_region(device: str) -> str:
    """Returns the prefix of a device's functions in a program: `device_npu_copy_in`."""
    return f"device_{device}"


DEVICE_FUNCTIONS = (
    *("message", "identity", "open", "close", "allocate", "free"),
    *("copy_in", "copy_out", "wait"),
)
"""Functions of a device, in the order of their addresses in its state."""


def device_state_slots(constants: int) -> int:
    """Returns the number of state slots of a device: two for each constant, one for each of its
    functions, and one for the status of the last allocation.
    """
    return 2 * constants + len(DEVICE_FUNCTIONS) + 1


QUEUE_SLOT, DEVICE_ARENA_SLOT, DEVICE_CONTEXT_SLOTS = 0, 1, 2
"""Context slots of a device: its queue, its arena, and their number; those of chains follow."""


def chain_slots(pointers: int) -> int:
    """Returns the number of slots of a chain: the recording, and the pointers that it was recorded
    with.
    """
    return 1 + pointers


DIRECT = "direct"
"""Suffix of the function that enqueues a chain without a recording."""

NAME = "byoc.name"
"""Attribute of an argument or a result of @main: its name in the model."""
COMPILER = "byoc.compiler"
"""Attribute of a function: the backend that runs it, and that alone interprets its body."""
DEVICE = "byoc.device"
"""Attribute of a declaration that stands for a device, with its slots and hooks: its name."""
MEMORY_SPACE = "byoc.memory_space"
"""Attribute of a region that runs on a device: the device's name."""
DEVICE_ARENAS = "byoc.device_arenas"
"""Attribute of a host function, after `plan-buffers`, and of the module: a dictionary with the size
of the arena on each device.
"""
DEVICE_TRAFFIC = "byoc.device_traffic"
"""Attribute of the module: a dictionary with the numbers of each device's copies and waits in a
run.
"""
RECORDS = "byoc.records"
"""Attribute of a device's declaration: the device records chains of work, and replays them."""
CHAIN = "byoc.chain"
"""Attribute of a host function, a chain of a device's regions: the device's name, and the first of
the chain's slots in the device's context.
"""
CHAINS = "byoc.chains"
"""Attribute of the module, after `add-entry-points`: a dictionary with a `Chain` by the name of its
function.
"""
UPLOADED = "byoc.uploaded"
"""Attribute of a device region's declaration: the slots of its constants in the device's state."""
INPUTS = "byoc.inputs"
"""Attribute of a region's declaration, after `bufferize`, in a module with devices: number of its
inputs, the first arguments, which it only reads.
"""
WORKSPACE = "byoc.workspace"
"""Attribute of a region's declaration: bytes of arena that a call needs besides its arguments."""
WORKSPACE_OFFSET = "byoc.workspace_offset"
"""Attribute of a region's declaration, after `plan-buffers`: offset of these bytes in the arena."""
ARENA_BYTES = "byoc.arena_bytes"
"""Attribute of the host function, after `plan-buffers`, and then of the module: size of the
arena.
"""
ARENA_SIZE = "byoc.arena_size"
"""Attribute of the same owners for symbolic sizes: symbolic size of the arena. `ARENA_BYTES` is
then its value for the hints.
"""
STATE_SLOTS = "byoc.state_slots"
CONTEXT_SLOTS = "byoc.context_slots"
"""Attributes of a region's declaration and, as totals, of the module: numbers of slots."""
HOOKS_DEFINED = "byoc.hooks"
"""Attribute of a region's declaration: the names of the hooks that it defines."""
KERNEL = "byoc.kernel"
"""Attribute of a function that is an outlined loop nest of the host."""
BINDS = "byoc.binds"
"""Attribute of a function: the symbol that takes the value of the function's first argument."""
PREFER_NO_GATHER = "byoc.prefer_no_gather"
"""Attribute of a function whose loads are not combined to gathers."""
GPU_KERNEL = "nvvm.kernel"
"""Attribute of a function in the `llvm` dialect that a GPU's driver launches."""
VECTORISED = "byoc.vectorised"
"""Attribute of a function that needs none of LLVM's optimisations: its loops do no scalar work."""
COMPUTED_IN = "byoc.computed_in"
"""Attribute of a matmul or convolution: the type in which it is computed, if the operands have
another type; `tf32` for `f32` operands that a backend may round to 10 bits of mantissa.
"""
WEIGHT = "byoc.weight"
"""Attribute of a global: the handle of its constant."""
STEP = "byoc.step"
"""Attribute of a call in a region's function `@R` that is a separate step of profiles. It is a
dictionary with `implementation`, the name of the implementation, and `layout`. Calls for a device
in host functions have it, too, with `device`, its name, and `bytes`, the size of a copy. The call's
location names the ONNX nodes.
"""
STEPS = "byoc.steps"
"""Attribute of the module, after `profile-steps`: the steps in the order of their slots."""
ALIASES = "byoc.aliases"
"""Attribute of the host function, after `bufferize`, and then of the module: outputs that may share
the memory of an input, as pairs of numbers, `[output, input]`.
"""
CHECKS = "byoc.checks"
"""Attribute of the module with the checks of values at run time: a dictionary for each check, in
the order of their numbers: `node`, `what`, `least`, `most`.
"""
CONTEXT_OFFSET = "byoc.context_offset"
"""Attribute of a region's function `@R` in the joined module: the first of its context slots."""
MAY_ALIAS = "byoc.may_alias"
"""Attribute of a function whose pointers may alias."""
