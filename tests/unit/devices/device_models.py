"""Models for tests of devices, runs whose copies are counted, and backends that only tests need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from fakenpu.c_backend import FakeNpuBackend
from fakenpu.control import Control, Counters
from onnx import ModelProto
from xdsl.dialects.func import FuncOp

import byoc_mlir
from byoc_mlir.backends import Backend, CodegenContext, CSource, Rule, register_backend
from byoc_mlir.backends.region import elementwise_f32
from byoc_mlir.dialects.relay.base import shape_of
from byoc_mlir.runtime.executable import Executable
from byoc_mlir.testing.networks import GraphBuilder
from byoc_mlir.testing.reference import assert_agrees, random_inputs, run_onnxruntime

FIRST = ("fakenpu", "fakenpu_eltwise")
"""Both backends of the first device."""

HOST_MILLISECONDS = 22


@register_backend
class NoPools(FakeNpuBackend):
    """Backend as `fakenpu`, without pools, so that these are work of the host."""

    name: ClassVar[str] = "fakenpu_no_pools"

    def op_rules(self) -> Mapping[str, Rule]:
        rules = super().op_rules()
        return {name: rule for name, rule in rules.items() if "pool" not in name}


@register_backend
class SlowHost(Backend):
    """Backend on the host's memory that takes 22 ms for `exp`."""

    name: ClassVar[str] = "slow_host"

    def op_rules(self) -> Mapping[str, Rule]:
        return {"exp": elementwise_f32}

    def codegen(self, region: FuncOp, context: CodegenContext) -> CSource:
        rows, columns = shape_of(region.args[0])
        return CSource(
            f"""
            #include <math.h>
            #include <time.h>
            int {region.sym_name.data}(const float *in, float *out) {{
              nanosleep(&(struct timespec){{0, {HOST_MILLISECONDS}000000}}, NULL);
              for (int i = 0; i < {rows * columns}; ++i) out[i] = expf(in[i]);
              return 0;
            }}
            """
        )


def compiled(model: ModelProto, *targets: str, **options: Any) -> Executable:
    """Compiles a model; the host takes what no target takes."""
    return byoc_mlir.compile(model, targets=targets, fallback="allow", **options)


def checked_run(executable: Executable, model: ModelProto, seed: int = 0) -> None:
    """Runs the executable, and compares the outputs with ONNX Runtime's."""
    inputs = random_inputs(model, seed=seed)
    assert_agrees(executable.run(inputs), run_onnxruntime(model, inputs), 1e-4)


def copies_of_a_run(model: ModelProto, *targets: str, device: str = "fakenpu") -> tuple[int, int]:
    """Returns the number of copies to the device and from it, in a run after the first."""
    with compiled(model, *targets) as executable:
        checked_run(executable, model)
        control = Control(device)
        before = control.counters()
        checked_run(executable, model, seed=1)
        found = control.counters().since(before)
    return found.copies_in, found.copies_out


@contextmanager
def nothing_left(*devices: str) -> Iterator[None]:
    """Asserts that the `with` body leaves no memory, queue or task on the devices."""
    controls = [Control(device) for device in devices or ("fakenpu", "fakenpu2")]
    before = [_live(control.counters()) for control in controls]
    yield
    assert [_live(control.counters()) for control in controls] == before


def _live(counters: Counters) -> tuple[int, ...]:
    return (
        counters.live_bytes,
        counters.live_allocations,
        counters.live_queues,
        counters.live_tasks,
    )


SIZE = 16


def _start(name: str) -> tuple[GraphBuilder, str]:
    b = GraphBuilder(name, seed=3)
    return b, b.relu(b.gemm(b.input("x", [4, SIZE]), SIZE))


def host_between() -> ModelProto:
    """Returns A → host → B."""
    b, x = _start("host_between")
    b.output(b.gemm(b.op("Softmax", x, axis=-1), SIZE), "out", [4, SIZE])
    return b.build()


def host_between_and_direct() -> ModelProto:
    """Returns A → host → B, and A → B."""
    b, x = _start("host_between_and_direct")
    b.output(b.add(b.op("Softmax", x, axis=-1), x), "out", [4, SIZE])
    return b.build()


def two_hosts_between() -> ModelProto:
    """Returns A → host → B → host → C, and A → C."""
    b, x = _start("two_hosts_between")
    y = b.gemm(b.op("Softmax", x, axis=-1), SIZE)
    b.channels[y] = SIZE
    b.output(b.add(b.op("Softmax", y, axis=-1), x), "out", [4, SIZE])
    return b.build()


def reshape_between() -> ModelProto:
    """Returns A → Reshape → B."""
    b, x = _start("reshape_between")
    b.output(b.gemm(b.reshape(x, 8, SIZE // 2), 4), "out", [8, 4])
    return b.build()


def two_backends() -> ModelProto:
    """Returns dense layers with element-wise ops between them, that another backend takes."""
    b, x = _start("two_backends")
    y = b.op("Mul", b.op("Tanh", x), x)
    b.channels[y] = SIZE
    b.output(b.gemm(y, SIZE), "out", [4, SIZE])
    return b.build()


def two_branches() -> ModelProto:
    """Returns a dense layer, and beside it an `Exp`, which `slow_host` takes; then their sum."""
    b = GraphBuilder("two_branches", seed=4)
    x = b.input("x", [4, SIZE])
    b.output(b.op("Div", b.gemm(x, SIZE), b.op("Exp", x)), "out", [4, SIZE])
    return b.build()


def weight_in_two_regions(batch: int | str = 4) -> ModelProto:
    """Returns two dense layers with the same weight, and work of the host between them."""
    b = GraphBuilder("weight_in_two_regions", seed=5)
    x = b.input("x", [batch, SIZE])
    weight = b.normal((SIZE, SIZE), 0.2)
    y = b.op("Softmax", b.op("Gemm", x, weight, transB=1), axis=-1)
    b.output(b.op("Gemm", y, weight, transB=1), "out", [batch, SIZE])
    return b.build()
