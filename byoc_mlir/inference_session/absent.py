"""Names of ONNX Runtime's interface that have no meaning here: some are accepted, others raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from byoc_mlir.errors import ByocError


def accepted(*_: Any, **__: Any) -> None:
    """Accepts any arguments and does nothing, as for telemetry, which there is none."""


_NAMES: Mapping[str, str] = {
    "pass dense arrays": (
        "SparseTensor OrtSparseFormat as_sparse_tensor ort_value_from_sparse_tensor"
    ),
    "merge the adapter into the weights of the model": (
        "LoraAdapter AdapterFormat add_active_adapter"
    ),
    "Executable.export_library writes a compiled model, and InferenceSession loads it": (
        "ModelCompiler ModelPackage ModelPackageComponentContext ModelPackageContext"
        " ModelPackageOptions ModelPackageWriteMode OrtCompileApiFlags OrtEpContextData"
        " OrtEpContextDataBuffer set_ep_context_data_read_func clear_ep_context_data_read_func"
    ),
    "InferenceSession(providers=…) takes the names of backends, and session.executable.report()"
    " says which backend runs a node": (
        "OrtEpDevice OrtEpAssignedNode OrtEpAssignedSubgraph OrtExecutionProviderDevicePolicy"
        " OrtHardwareDevice OrtHardwareDeviceType get_ep_devices"
        " register_execution_provider_library unregister_execution_provider_library add_provider"
        " add_provider_for_devices set_provider_selection_policy"
        " set_provider_selection_policy_delegate set_ep_dynamic_options get_input_epdevices"
        " get_provider_graph_assignment_info"
    ),
    "all memory is the processor's: OrtValue.ortvalue_from_numpy takes an array as it is": (
        "OrtAllocatorType OrtArenaCfg OrtDevice OrtDeviceMemoryType OrtDeviceVendorId OrtMemType"
        " OrtMemoryInfo OrtMemoryInfoDeviceType OrtSyncStream create_and_register_allocator"
        " create_and_register_allocator_v2 copy_tensors get_input_memory_infos"
        " get_output_memory_infos create_ortvalue_from_shape_and_type run_with_ortvaluevector"
        " get_outputs_as_ortvaluevector"
    ),
    "SessionOptions.add_initializer takes arrays": (
        "OrtExternalInitializerInfo add_external_initializers_from_files_in_memory"
    ),
    "add_free_dimension_override_by_name takes the names of dimensions": (
        "add_free_dimension_override_by_denotation"
    ),
    "byoc_mlir.compile(profile=True) has Executable.profile, see also docs/tuning.md": (
        "end_profiling get_profiling_start_time_ns get_tuning_results"
    ),
    "call run on a thread of your own: it lets others work meanwhile": "run_async",
    "a model's ops run in their order, here": "ExecutionOrder has_collective_ops",
    "byoc_mlir.Limits(seconds=…) bounds a compilation": "set_load_cancellation_flag",
}
"""Names that have no meaning here, by the advice on what to do instead."""

_INSTEAD = {name: instead for instead, names in _NAMES.items() for name in names.split()}


class Absent:
    """Name that has no meaning here; each use raises a `ByocError`."""

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
    """Returns a stand-in for a name of ONNX Runtime.

    Raises:
        AttributeError: ONNX Runtime has no such name either.
    """
    if name not in _INSTEAD:
        raise AttributeError(f"{owner} has no attribute '{name}'")
    return Absent(name, _INSTEAD[name])


class Partial:
    """Base of classes that have most of ONNX Runtime's methods, but not all."""

    def __getattr__(self, name: str) -> Any:
        return absent(type(self).__name__, name)
