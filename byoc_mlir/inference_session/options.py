"""What a session and a run can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

from byoc_mlir.errors import ByocError


class GraphOptimizationLevel(IntEnum):
    """Accepted; every model is optimised in full."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Accepted; a model's ops run in their order, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


_FLUSH = "session.set_denormal_as_zero"


@dataclass
class SessionOptions:
    """Options of a session.

    `intra_op_num_threads`, sizes given by `add_free_dimension_override_by_name`, and the entry
    `session.set_denormal_as_zero` have an effect. The others are accepted and change nothing, since
    they say how ONNX Runtime goes about it.
    """

    intra_op_num_threads: int = 0
    """Threads of a run; 0: the cores that this process may use."""
    inter_op_num_threads: int = 0
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    use_deterministic_compute: bool = False
    logid: str = ""
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Says what a symbolic dimension will be, so that the session compiles for it at once."""
        if size < 0:
            raise ByocError(f"the size of '{name}' is {size}, accepted are 0 and more")
        self._sizes[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry; `session.set_denormal_as_zero` takes denormals for zero."""
        if key == _FLUSH and value not in ("0", "1"):
            raise ByocError(f"{key} is {value!r}, accepted are '0' and '1'")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """An entry that was added before.

        Raises:
            ByocError: there is none.
        """
        if key not in self._entries:
            raise ByocError(
                f"there is no entry '{key}'; there is {', '.join(self._entries) or '-'}"
            )
        return self._entries[key]

    @property
    def sizes(self) -> dict[str, int]:
        """The symbolic dimensions that are known."""
        return dict(self._sizes)

    @property
    def flushes_denormals(self) -> bool:
        """Whether denormals are taken for zero."""
        return self._entries.get(_FLUSH) == "1"


@dataclass
class RunOptions:
    """Options of a run: accepted, and they change nothing."""

    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
