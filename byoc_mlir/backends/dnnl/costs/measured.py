"""Latencies of primitives that `byoc tune` or `warmup` measured on this machine."""

from __future__ import annotations

import hashlib

from byoc_mlir.backends.dnnl.library.timing import bench
from byoc_mlir.backends.dnnl.primitives.descriptions import DescribedPrimitive
from byoc_mlir.calibration import Calibration, Measurement, current_calibration
from byoc_mlir.errors import ByocError
from byoc_mlir.onednn.library import load_library
from byoc_mlir.onednn.primitives import PrimitiveDescriptor

GROUP = "dnnl"
"""Calibration group of these measurements."""

_LEAST_MILLISECONDS = 1e-6
"""Minimum of a measurement, because a clock may report that no time has passed."""

_SLOW = ("ref", "x64:gemm")
"""Beginnings of the names of implementations that are never the fastest: measuring them takes long
and decides nothing."""


def measured_milliseconds(
    described: DescribedPrimitive, descriptor: PrimitiveDescriptor, threads: int
) -> float | None:
    """Returns the measured latency of a primitive; measures it if the compilation may.

    Returns `None` if the latency has to be estimated.

    Raises:
        ByocError: the calibration is from a file, for another version of the library.
    """
    calibration, implementation = current_calibration(), descriptor.implementation
    if not (calibration.may_measure or calibration.group(GROUP)):
        return None
    if implementation.startswith(_SLOW):
        return None
    calibration.view(check_library)
    call = hashlib.sha256(repr(described.call).encode()).hexdigest()[:32]
    key = "/".join((GROUP, described.call.kind, implementation, str(threads), call))
    known = calibration.find(key)
    if known is not None and known.source == _library():
        return known.number
    if not calibration.may_measure:
        return None
    taken = bench.milliseconds(descriptor, described.arguments, described.parameters)
    milliseconds = max(taken, _LEAST_MILLISECONDS)
    calibration.add(Measurement(key, "ms", _library(), milliseconds))
    return milliseconds


def check_library(calibration: Calibration) -> None:
    """Checks that a calibration file has latencies of this version of the library only.

    Raises:
        ByocError: a latency is of another version, or is not a number above 0.
    """
    if calibration.is_kept:
        return
    for one in list(calibration.group(GROUP).values()):
        if one.source != _library():
            raise ByocError(
                f"oneDNN is {_library()} here; the calibration's primitives were measured with"
                f" {one.source!r}"
            )
        _ = one.number


def _library() -> str:
    return f"oneDNN {'.'.join(map(str, load_library().version))}"
