"""Options of a session and of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any, cast

from byoc_mlir.boundary import check_argument
from byoc_mlir.errors import ByocError
from byoc_mlir.inference_session.absent import Partial
from byoc_mlir.inference_session.binding import OrtValue
from byoc_mlir.names import meant
from byoc_mlir.tensors import Array


class GraphOptimizationLevel(IntEnum):
    """Levels of optimisation: accepted without effect, since every model is optimised in full."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Modes of execution: accepted without effect; a model's ops run in order, each on all
    threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


_FLUSH = "session.set_denormal_as_zero"

_WITHOUT_MEANING: Mapping[str, tuple[object, str]] = {
    "enable_profiling": (
        False,
        "byoc_mlir.compile(profile=True) has Executable.profile",
    ),
    "terminate": (False, "a run cannot be ended from outside"),
}
"""Fields without an effect that may only be set to these values, with advice on what to do instead.
"""


class Options(Partial):
    """Base of options, whose fields can only be set to values of their types.

    Setting an unknown field, or a value of another type, raises a `ByocError`.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            self._check(name, value)
        object.__setattr__(self, name, value)

    def _check(self, name: str, value: object) -> None:
        cls = type(self)
        known = [one.name for one in fields(cast(Any, cls)) if not one.name.startswith("_")]
        if name not in known:
            raise ByocError(
                f"{cls.__name__} has no field '{name}'{meant(name, known)}; there are"
                f" {', '.join(known)}"
            )
        kind = _kind_of(getattr(cls, name))
        check_argument(f"{cls.__name__}.{name}", value, kind, kind.__name__)
        only, instead = _WITHOUT_MEANING.get(name, (value, ""))
        if value != only:
            raise ByocError(f"{cls.__name__}.{name} is {value!r}, accepted is {only!r}; {instead}")


def _kind_of(default: object) -> type:
    """Returns the type of a field by its default; for an enumeration any integer is accepted."""
    return int if isinstance(default, IntEnum) else type(default)


@dataclass
class SessionOptions(Options):
    """Options of a session.

    `intra_op_num_threads`, sizes set by `add_free_dimension_override_by_name`, and the entry
    `session.set_denormal_as_zero` have an effect. The others are accepted without effect, since
    they control how ONNX Runtime works: no file is written to `optimized_model_filepath`.
    `enable_profiling` is refused, since a user would read the file that it requests.
    """

    intra_op_num_threads: int = 0
    """Number of threads of a run; 0 for all cores that this process may use."""
    inter_op_num_threads: int = 0
    graph_optimization_level: GraphOptimizationLevel = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: ExecutionMode = ExecutionMode.ORT_SEQUENTIAL
    execution_order: int = 0
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_mem_reuse: bool = True
    enable_profiling: bool = False
    profile_file_prefix: str = "onnxruntime_profile_"
    optimized_model_filepath: str = ""
    use_deterministic_compute: bool = False
    use_per_session_threads: bool = True
    logid: str = ""
    log_severity_level: int = 2
    log_verbosity_level: int = 0
    _sizes: dict[str, int] = field(default_factory=dict[str, int])
    _entries: dict[str, str] = field(default_factory=dict[str, str])
    _initialisers: dict[str, Array] = field(default_factory=dict[str, Array])

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Sets the elements of an initializer; the model's file need not have them."""
        check_argument("ort_value", ort_value, OrtValue, "an OrtValue")
        self._initialisers[name] = ort_value.numpy()

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Sets the elements of several initializers, as `add_initializer` does."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def has_providers(self) -> bool:
        """Returns `False`, since providers are passed to `InferenceSession`."""
        return False

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Sets the size of a symbolic dimension of inputs or outputs; other sizes are refused
        then."""
        if size < 0:
            raise ByocError(f"the size of '{name}' is {size}, accepted are 0 and more")
        self._sizes[name] = size

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry; `session.set_denormal_as_zero` treats denormals as zero."""
        if key == _FLUSH and value not in ("0", "1"):
            raise ByocError(f"{key} is {value!r}, accepted are '0' and '1'")
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """Returns an entry that was added before.

        Raises:
            ByocError: there is none.
        """
        return _entry(self._entries, key)

    def register_custom_ops_library(self, path: str) -> None:
        """Refuses the library, since it is built for ONNX Runtime.

        Raises:
            ByocError: always; it names the alternative.
        """
        raise ByocError(
            f"'{path}' has code for ONNX Runtime; byoc_mlir.frontend.register_op imports ops of"
            " your own, see docs/custom-ops.md"
        )

    @property
    def sizes(self) -> dict[str, int]:
        """Returns the sizes of symbolic dimensions that are set."""
        return dict(self._sizes)

    @property
    def initialisers(self) -> dict[str, Array]:
        """Returns the values of initializers by name."""
        return dict(self._initialisers)

    @property
    def flushes_denormals(self) -> bool:
        """True if denormals are treated as zero."""
        return self._entries.get(_FLUSH) == "1"


@dataclass
class RunOptions(Options):
    """Options of a run: accepted without effect, except for `terminate`, which is refused."""

    log_severity_level: int = 2
    log_verbosity_level: int = 0
    logid: str = ""
    only_execute_path_to_fetches: bool = False
    terminate: bool = False
    _entries: dict[str, str] = field(default_factory=dict[str, str])

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry."""
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """Returns an entry that was added before.

        Raises:
            ByocError: there is none.
        """
        return _entry(self._entries, key)


def _entry(entries: Mapping[str, str], key: str) -> str:
    if key not in entries:
        raise ByocError(f"there is no entry '{key}'; there is {', '.join(entries) or '-'}")
    return entries[key]
