"""Properties of the GPU that plans are made for, as cuDNN writes and reads them.

`python -m byoc_mlir.backends.cudnn.properties` prints those of this machine's GPU, for machines
without one: they read the file that `BYOC_CUDNN_DEVICE` names.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from byoc_mlir.backends.cudnn.constants import Attribute, DescriptorKind, Type
from byoc_mlir.backends.cudnn.descriptors import OwnedDescriptors
from byoc_mlir.backends.cudnn.library import Cudnn, load_cudnn
from byoc_mlir.errors import BackendError
from byoc_mlir.nvidia.driver import ORDINAL
from byoc_mlir.nvidia.gpu import find_gpu

ENVIRONMENT_VARIABLE = "BYOC_CUDNN_DEVICE"
"""Environment variable with the path of saved properties, which are used even if there is a GPU."""


def device_properties() -> bytes:
    """Returns the properties: those that the user named, or those of this machine's GPU.

    Raises:
        BackendError: the file cannot be read; none is named, and there is no cuDNN or no GPU.
    """
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen:
        return _saved(Path(chosen))
    library = load_cudnn()
    try:
        gpu = find_gpu()
    except BackendError as error:
        raise BackendError(
            f"cuDNN {library.version_text} has no GPU to plan for: {error}; {ENVIRONMENT_VARIABLE}"
            " may name a file with the properties of another machine's GPU"
        ) from error
    return _of_gpu(library, gpu.identity)


def _saved(path: Path) -> bytes:
    try:
        return path.read_bytes().strip()
    except OSError as error:
        raise BackendError(f"{ENVIRONMENT_VARIABLE} names no readable file: {error}") from error


@cache
def _of_gpu(library: Cudnn, identity: str) -> bytes:
    """Returns the properties of the GPU; its identity is the key of the cache."""
    with OwnedDescriptors(library) as descriptors:
        device = descriptors.new(DescriptorKind.DEVICE_PROPERTIES)
        device.set(Attribute.DEVICE_NUMBER, Type.INT32, ORDINAL).finalize()
        return device.found_text(Attribute.DEVICE_JSON)


if __name__ == "__main__":
    sys.stdout.write(device_properties().decode() + "\n")
