"""Names of ONNX Runtime's interface that have no meaning here: some are accepted, others raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byoc_mlir.errors import ByocError


def accepted(*_: Any, **__: Any) -> None:
    """Accepts what is said, which changes nothing: there is no telemetry, for example."""


def _all(names: str, instead: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), instead)


_ABSENT: Mapping[str, str] = {
    **_all(
        "SparseTensor OrtSparseFormat as_sparse_tensor ort_value_from_sparse_tensor",
        "pass dense arrays",
    ),
    **_all(
        "LoraAdapter AdapterFormat add_active_adapter",
        "merge the adapter into the weights of the model",
    ),
    **_all(
        "ModelCompiler ModelPackage ModelPackageComponentContext ModelPackageContext"
        " ModelPackageOptions ModelPackageWriteMode OrtCompileApiFlags OrtEpContextData"
        " OrtEpContextDataBuffer set_ep_context_data_read_func clear_ep_context_data_read_func",
        "Executable.export_library writes a compiled model, and InferenceSession loads it",
    ),
    **_all(
        "OrtEpDevice OrtEpAssignedNode OrtEpAssignedSubgraph OrtExecutionProviderDevicePolicy"
        " OrtHardwareDevice OrtHardwareDeviceType get_ep_devices"
        " register_execution_provider_library unregister_execution_provider_library add_provider"
        " add_provider_for_devices set_provider_selection_policy"
        " set_provider_selection_policy_delegate set_ep_dynamic_options get_input_epdevices"
        " get_provider_graph_assignment_info",
        "InferenceSession(providers=…) takes the names of backends, and session.executable.report()"
        " says which backend runs a node",
    ),
    **_all(
        "OrtAllocatorType OrtArenaCfg OrtDevice OrtDeviceMemoryType OrtDeviceVendorId OrtMemType"
        " OrtMemoryInfo OrtMemoryInfoDeviceType OrtSyncStream create_and_register_allocator"
        " create_and_register_allocator_v2 copy_tensors get_input_memory_infos"
        " get_output_memory_infos create_ortvalue_from_shape_and_type run_with_ortvaluevector"
        " get_outputs_as_ortvaluevector",
        "all memory is the processor's: OrtValue.ortvalue_from_numpy takes an array as it is",
    ),
    **_all(
        "OrtExternalInitializerInfo add_external_initializers_from_files_in_memory",
        "SessionOptions.add_initializer takes arrays",
    ),
    **_all(
        "add_free_dimension_override_by_denotation",
        "add_free_dimension_override_by_name takes the names of dimensions",
    ),
    **_all(
        "end_profiling get_profiling_start_time_ns get_tuning_results",
        "byoc_mlir.compile(profile=True) has Executable.profile, see also docs/tuning.md",
    ),
    **_all("run_async", "call run on a thread of your own: it lets others work meanwhile"),
    **_all("ExecutionOrder has_collective_ops", "a model's ops run in their order, here"),
    **_all("set_load_cancellation_flag", "byoc_mlir.Limits(seconds=…) bounds a compilation"),
}
"""What to do instead, by name."""


class Absent:
    """A name that has no meaning here; whoever uses it gets a `ByocError`."""

    def __init__(self, name: str, instead: str):
        self._refusal = f"'{name}' is ONNX Runtime's alone; {instead}"

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise ByocError(self._refusal)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ByocError(self._refusal)

    def __instancecheck__(self, instance: object) -> bool:
        return False


def absent(owner: str, name: str) -> Absent:
    """Returns what stands for a name of ONNX Runtime.

    Raises:
        AttributeError: ONNX Runtime has no such name either.
    """
    if name not in _ABSENT:
        raise AttributeError(f"{owner} has no attribute '{name}'")
    return Absent(name, _ABSENT[name])


class Partial:
    """Base of classes that have the most, and not all, of ONNX Runtime's methods."""

    def __getattr__(self, name: str) -> Any:
        return absent(type(self).__name__, name)
