"""Package on aarch64, where there is no oneDNN: its messages, and a compilation."""

from __future__ import annotations

import json
import subprocess
import sys

_ON_AARCH64 = """
import platform
import sys
import importlib.metadata as metadata

known = metadata.files

def files(name):
    if name == "onednn-cpu-gomp":
        raise metadata.PackageNotFoundError(name)
    return known(name)

metadata.files, platform.machine = files, lambda: "aarch64"
exec(sys.argv[1])
"""
"""Prelude of a script that changes the name of the architecture; the processor stays the same."""

_SCRIPT = """
import warnings
import numpy as np
import byoc_mlir
from byoc_mlir.testing.networks import NETWORKS
from byoc_mlir.tools.byoc import main

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    executable = byoc_mlir.compile(NETWORKS["mlp3"](), threads=1)
(said,) = [str(one.message) for one in caught if "backend" in str(one.message)]
assert "without backend 'dnnl': oneDNN is used on x86_64 alone, this machine is aarch64" in said
assert executable.program.cpu.architecture == "aarch64"
assert set(executable.report().counts()) <= {"host", "folded", "removed"}
(y,) = executable.run({"input": np.ones((1, 64), np.float32)}).values()
assert np.isfinite(y).all()
try:
    byoc_mlir.compile(NETWORKS["mlp3"](), targets=("dnnl",))
except byoc_mlir.errors.BackendError as error:
    assert "the host compiler takes the whole model" in str(error)
else:
    raise AssertionError("dnnl is usable")
raise SystemExit(main(["doctor", "--json"]))
"""


def test_the_host_compiles_the_whole_model_and_doctor_says_why() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _ON_AARCH64, _SCRIPT],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found = {row["what"]: row["found"] for row in json.loads(done.stdout)}
    assert "oneDNN is used on x86_64 alone, this machine is aarch64" in found["backend dnnl"]
