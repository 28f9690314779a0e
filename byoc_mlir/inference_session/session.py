"""`InferenceSession`: a compiled model behind ONNX Runtime's methods.

https://onnxruntime.ai/docs/api/python/api_summary.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import ModelProto, helper, numpy_helper

from byoc_mlir.backends import backend_names
from byoc_mlir.boundary import boundary, check_argument
from byoc_mlir.compiler import compile
from byoc_mlir.compiler.options import default_targets
from byoc_mlir.errors import InvalidInputError, InvalidModelError
from byoc_mlir.frontend.files.load import parse_model
from byoc_mlir.frontend.files.tensors import TensorReader
from byoc_mlir.frontend.fixed_sizes import with_fixed_sizes
from byoc_mlir.inference_session.absent import Partial, absent, accepted
from byoc_mlir.inference_session.binding import IOBinding, OrtValue
from byoc_mlir.inference_session.model_info import ModelInfo, ModelMetadata, NodeArg
from byoc_mlir.inference_session.options import RunOptions, SessionOptions
from byoc_mlir.runtime import Executable
from byoc_mlir.runtime.load import load
from byoc_mlir.warned import warn_user

_HOST = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """Returns the default backends of this machine, and the host."""
    return [*default_targets()[0], _HOST]


def get_all_providers() -> list[str]:
    """Returns every installed backend, usable on this machine or not, and the host."""
    return [*backend_names(), _HOST]


class InferenceSession(Partial):
    """Session of a model, with the interface of ONNX Runtime's class of this name.

    Args:
        path_or_bytes: path of an `.onnx` file, of an `.mlir` file, or of a compiled `.so`; or the
            bytes of an ONNX model.
        sess_options: see `SessionOptions`.
        providers: names of backends in order of preference; `CPUExecutionProvider` is the host.
            Without any, or with the host alone: the default backends. A provider of ONNX Runtime
            that is none of these is ignored with a warning.
        provider_options: for each provider its options, in the same order.

    Raises:
        ByocError: an error of `byoc_mlir.compile` or `byoc_mlir.load`.
    """

    def __init__(
        self,
        path_or_bytes: str | Path | bytes,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ):
        with boundary("InferenceSession"):
            accepted = "the path of a model, or the bytes of an ONNX model"
            check_argument(
                "path_or_bytes", path_or_bytes, str | Path | bytes, accepted, InvalidModelError
            )
            self._options = SessionOptions() if sess_options is None else sess_options
            check_argument("sess_options", self._options, SessionOptions, "SessionOptions, or None")
            self._providers = _with_options(providers, provider_options)
            is_path = isinstance(path_or_bytes, str | Path)
            self._model = Path(path_or_bytes).absolute() if is_path else path_or_bytes
            self._info: ModelInfo | None = None
            self._resident: dict[str, str] = {}
            """Devices of inputs and outputs that are bound to the memory of one."""
            self._executable = self._open()

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Runs the model.

        Args:
            output_names: the requested outputs, in this order; `None`: all.
            input_feed: arrays by input name; inputs with a default value may be omitted.

        Raises:
            InvalidInputError: a name is unknown, or an input missing or of a wrong dtype or shape.
            ExecutionError: a native call failed.
        """
        if output_names:
            self._check_outputs(output_names)
        values = self._executable.run(_arrays(input_feed))
        return [values[name] for name in output_names or self._executable.outputs]

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Runs the model as `run` does, on `OrtValue`s in place of arrays."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values)]

    def io_binding(self) -> IOBinding:
        """Returns a binding of inputs and outputs to memory, for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Runs the model on the bound inputs and outputs; errors as in `run`."""
        wanted = iobinding.destinations
        if not wanted:
            raise InvalidInputError("no output is bound; call bind_output for those you want")
        if iobinding.devices != self._resident:
            self._resident = dict(iobinding.devices)
            self._executable = self._open()
        out = {name: array for name, array in wanted.items() if array is not None}
        values = self._executable.run(iobinding.inputs, out=out)
        iobinding.results = {name: values[name] for name in wanted}

    def get_inputs(self) -> list[NodeArg]:
        """Returns the required inputs, in order."""
        return list(self._model_info.inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Returns the outputs, in order."""
        return list(self._model_info.outputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Returns the inputs with a default value, which cannot be overridden here."""
        return list(self._model_info.initialisers)

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the model's metadata."""
        return self._model_info.metadata

    def get_providers(self) -> list[str]:
        """Returns the names of the requested backends, then the host."""
        return [*self._providers, _HOST]

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Compiles the model again, for other providers."""
        with boundary("InferenceSession"):
            self._providers = _with_options(providers, provider_options)
            self._executable = self._open()

    def get_provider_options(self) -> dict[str, dict[str, Any]]:
        """Returns the options of each provider."""
        return {name: dict(options) for name, options in self._providers.items()} | {_HOST: {}}

    def get_session_options(self) -> SessionOptions:
        """Returns the options with which the session was created."""
        return self._options

    disable_fallback = enable_fallback = release_captured_graph = set_tuning_results = accepted
    run_async = absent("InferenceSession", "run_async")
    end_profiling = absent("InferenceSession", "end_profiling")
    get_profiling_start_time_ns = end_profiling

    @property
    def executable(self) -> Executable:
        """Returns the compiled model, with its report."""
        return self._executable

    def _open(self) -> Executable:
        threads = self._options.intra_op_num_threads or None
        if isinstance(self._model, str | Path) and Path(self._model).suffix == ".so":
            if self._options.sizes:
                raise InvalidInputError(
                    f"'{self._model}' is compiled, so its sizes cannot be set; found"
                    f" {', '.join(self._options.sizes)}"
                )
            return load(self._model, threads=threads)
        given = self._options.initialisers
        return compile(
            _with_initialisers(self._model, given) if given else self._model,
            targets=tuple(self._providers) or None,
            threads=threads,
            fallback="allow",
            backend_options=self._providers,
            denormals="flush" if self._options.flushes_denormals else "keep",
            sizes=self._options.sizes,
            resident=self._resident,
        )

    @property
    def _model_info(self) -> ModelInfo:
        if self._info is None:  # of a large model it takes a while
            self._info = self._read_info()
        return self._info

    def _read_info(self) -> ModelInfo:
        is_onnx = isinstance(self._model, bytes) or Path(self._model).suffix == ".onnx"
        if is_onnx:
            proto = parse_model(self._model)
            return ModelInfo.of_proto(with_fixed_sizes(proto, self._options.sizes))
        return ModelInfo.of_tensors(self._executable.inputs, self._executable.program.outputs)

    def _check_outputs(self, names: Sequence[str]) -> None:
        unknown = [str(name) for name in names if name not in self._executable.outputs]
        if unknown:
            raise InvalidInputError(
                f"there is no output {', '.join(unknown)}; the model's are"
                f" {', '.join(self._executable.outputs)}"
            )


def _with_initialisers(source: str | Path | bytes, given: Mapping[str, Any]) -> ModelProto:
    """Returns the model with these arrays as its initializers of their names.

    Raises:
        InvalidInputError: an array has another type or shape than the initializer.
    """
    model = parse_model(source)
    for tensor in model.graph.initializer:
        if tensor.name not in given:
            continue
        array, kind = given[tensor.name], helper.tensor_dtype_to_np_dtype(tensor.data_type)
        if array.dtype != kind or array.shape != tuple(tensor.dims):
            raise InvalidInputError(
                f"initializer '{tensor.name}' is {kind}{list(tensor.dims)}, found"
                f" {array.dtype}{list(array.shape)}"
            )
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    TensorReader.beside(source).inline(model.graph)
    return model


def _with_options(
    providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None,
    options: Sequence[Mapping[str, Any]] | None,
) -> dict[str, Mapping[str, Any]]:
    """Returns the requested backends with their options, and warns about unknown providers."""
    asked: Sequence[str | tuple[str, Mapping[str, Any]]] = providers or ()
    if options is not None and len(options) != len(asked):
        raise InvalidInputError(
            f"provider_options has {len(options)} entries for {len(asked)} providers"
        )
    found: dict[str, Mapping[str, Any]] = {}
    for index, provider in enumerate(asked):
        name, own = (provider, {}) if isinstance(provider, str) else provider
        if name in backend_names():
            found[name] = own if options is None else {**own, **options[index]}
        elif name != _HOST:
            warn_user(
                f"provider '{name}' is not there, it is passed over; there are"
                f" {', '.join(get_all_providers())}",
            )
    return found


def _arrays(feed: Mapping[str, Any]) -> dict[str, Any]:
    if type(feed) is not dict:  # the check takes a tenth of a small model's time
        accepted = "a dictionary of arrays by the inputs' names"
        check_argument("input_feed", feed, Mapping, accepted, InvalidInputError)
    return {
        name: value.numpy() if isinstance(value, OrtValue) else value
        for name, value in feed.items()
    }
