"""OpenMP threads of a run: each has a core of its own, unless runs overlap."""

from __future__ import annotations

import os

import pytest

from byoc_mlir.testing.forked import run_forked

pytestmark = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="a run needs two cores to have several threads"
)

_HELPERS = """
import ctypes, os, threading
import numpy as np
import byoc_mlir
from byoc_mlir.runtime.linking.native_module import NativeModule
from byoc_mlir.runtime.system.threads import loaded_openmp
from onnx import helper, TensorProto

CORES = os.sched_getaffinity(0)
DATA = np.random.default_rng(0).standard_normal((512, 512), np.float32)

def compiled(threads):
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, DATA.shape) for name in "xy"]
    nodes = [helper.make_node("Tanh", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "tanh", values[:1], values[1:])
    return byoc_mlir.compile(helper.make_model(graph), threads=threads, targets=[])

def run(model):
    found = model.run({"x": DATA})["y"]
    np.testing.assert_allclose(found, np.tanh(DATA), atol=1e-6)

def others(threads):
    "Returns the cores on which the other threads of this thread's team may run."
    numbers = []
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    add = callback(lambda _: numbers.append(threading.get_native_id()))
    loaded_openmp().GOMP_parallel(add, None, threads, 0)
    caller = threading.get_native_id()
    return [os.sched_getaffinity(one) for one in numbers if one != caller]
"""

_EACH_ITS_OWN = """
run(compiled(len(CORES)))
bound = others(len(CORES))
assert all(len(one) == 1 for one in bound), bound
assert len(set().union(*bound)) == len(CORES) - 1, bound
assert os.sched_getaffinity(0) == CORES
"""

_MORE_THREADS_THAN_CORES = """
run(compiled(len(CORES) + 1))
assert all(one == CORES for one in others(len(CORES) + 1))
"""

_PLACED = """
from byoc_mlir.kernels.module_builder import ModuleBuilder
from byoc_mlir.kernels.builder import POINTER, VOID
from byoc_mlir.kernels.team import BEGIN_RUN, END_RUN, KEEP_CORES, add_run_functions
from byoc_mlir.lowering.llvm_ir.codegen import emit_objects
from byoc_mlir.lowering.symbols import external_functions
from byoc_mlir.runtime.system.libraries import load_library, resolve_symbol
from pathlib import Path

module = ModuleBuilder()
add_run_functions(module)
begin = module.function("begin", (), result=POINTER)
begin.finish(begin.call(BEGIN_RUN, result=POINTER))
keep = module.function("keep", (), result=VOID)
keep.do(KEEP_CORES)
keep.finish()
end = module.function("end", (POINTER,), result=VOID)
end.do(END_RUN, *end.parameters)
end.finish()
openmp = load_library(Path("libgomp.so.1"))
symbols = {name: resolve_symbol(name, [openmp]) for name in external_functions(module.module)}
runs = np.zeros(2, np.int64)
symbols["byoc_runs"] = runs.ctypes.data
native = NativeModule(emit_objects(module.module), ["begin", "keep", "end"], symbols)
begin = ctypes.CFUNCTYPE(ctypes.c_void_p)(native.address("begin"))
keep = ctypes.CFUNCTYPE(None)(native.address("keep"))
end = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native.address("end"))
getcpu = ctypes.CDLL(None).sched_getcpu

openmp.omp_set_num_threads(len(CORES))
run = begin()
keep()
home = CORES - set().union(*others(len(CORES)))
assert len(home) == 1, home
"""

_MOVES = """
times = 0
for _ in range(20):
    os.sched_setaffinity(0, CORES - home)
    os.sched_setaffinity(0, CORES)
    keep()
    times += getcpu() in home
    assert os.sched_getaffinity(0) == CORES
assert times > 10, times  # a busy machine may move the caller again
end(run)
"""

_OTHER_RUN = """
other = threading.Thread(target=lambda: end(begin()))
other.start()
other.join()
end(run)
assert runs.tolist() == [0, 1]
assert all(one == CORES for one in others(len(CORES)))
run = begin()
keep()
assert all(one == CORES for one in others(len(CORES)))
"""


def test_each_thread_of_a_team_has_a_core_and_the_caller_keeps_all() -> None:
    run_forked(_HELPERS + _EACH_ITS_OWN, seconds=120)


def test_a_team_of_more_threads_than_cores_stays_where_it_is() -> None:
    run_forked(_HELPERS + _MORE_THREADS_THAN_CORES, seconds=120)


def test_a_caller_that_was_moved_returns_to_its_core_before_a_loop() -> None:
    run_forked(_HELPERS + _PLACED + _MOVES, seconds=120)


def test_teams_are_freed_when_runs_overlap() -> None:
    run_forked(_HELPERS + _PLACED + _OTHER_RUN, seconds=120)
