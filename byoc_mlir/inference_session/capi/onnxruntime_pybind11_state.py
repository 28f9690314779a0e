"""ONNX Runtime's exceptions: names for the errors that are raised here in their place."""

from byoc_mlir.errors import (
    BackendError,
    ByocError,
    ExecutionError,
    InvalidInputError,
    InvalidModelError,
    LimitExceededError,
    UnsupportedModelError,
)

Fail = ByocError
InvalidArgument = InvalidInputError
NoSuchFile = NoModel = InvalidProtobuf = InvalidGraph = InvalidModelError
NotImplemented = UnsupportedModelError
EPFail = NotFound = ModelRequiresCompilation = BackendError
RuntimeException = EngineError = ModelLoaded = DeviceReset = ExecutionError
ModelLoadCanceled = LimitExceededError
