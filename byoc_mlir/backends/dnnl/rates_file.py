"""What was measured, as a file: the same file gives the same decisions, and measures nothing."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from byoc_mlir.backends.dnnl.measurements import (
    Known,
    Measuring,
    Rate,
    current_measuring,
    key_of,
)
from byoc_mlir.backends.onednn import load_library
from byoc_mlir.errors import BackendError
from byoc_mlir.files import open_file

_VERSION = 1


def write_rates(known: Known, path: str) -> None:
    """Writes what is known to a JSON file.

    Raises:
        BackendError: the file cannot be written.
    """
    times = {(key_of(call), threads): time for (call, threads), time in known.times.items()}
    document = {
        "version": _VERSION,
        "library": _library(),
        "times": [
            {"call": call, "threads": threads, "milliseconds": milliseconds}
            for (call, threads), milliseconds in sorted({**known.given, **times}.items())
        ],
        "rates": [
            {"kind": kind, "family": family, "threads": threads, **asdict(rate)}
            for (kind, family, threads), rate in sorted(known.rates.items(), key=lambda one: one[0])
        ],
    }
    try:
        Path(path).write_text(json.dumps(document, indent=1) + "\n")
    except OSError as error:
        raise BackendError(f"cannot write the rates: {error}") from error


def read_rates(path: str) -> Known:
    """What a file says that `write_rates` wrote.

    Raises:
        BackendError: there is no such file, it holds something else, or it was written for another
            version of the library.
    """
    with open_file(path, BackendError) as file:
        data = file.read()
    try:
        return _known(json.loads(data))
    except (ValueError, KeyError, TypeError) as error:
        raise BackendError(
            f"'{path}' holds no rates of oneDNN ({type(error).__name__}: {error}); the pass"
            " write-dnnl-rates writes such a file"
        ) from error


def measuring_of(path: str) -> Measuring:
    """What a file of rates says, and nothing more; without a path, what `current_measuring` says.

    Raises:
        BackendError: as `read_rates`.
    """
    return Measuring(read_rates(path), seconds=0) if path else current_measuring()


def _known(document: Any) -> Known:
    for name, expected in (("version", _VERSION), ("library", _library())):
        if document[name] != expected:
            raise ValueError(f"{name} is {document[name]!r}, expected {expected!r}")
    given = {
        (str(one["call"]), int(one["threads"])): _number(one, "milliseconds")
        for one in document["times"]
    }
    rates = {
        (str(one["kind"]), str(one["family"]), int(one["threads"])): Rate(
            _number(one, "default"),
            _number(one, "work"),
            _number(one, "milliseconds"),
            int(one["samples"]),
        )
        for one in document["rates"]
    }
    return Known({}, rates, given)


def _number(entry: Mapping[str, Any], name: str) -> float:
    number = float(entry[name])
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} is {number}, accepted are numbers from 0 on")
    return number


def _library() -> str:
    return ".".join(map(str, load_library().version))
