"""Backend with one fault for each kind of failure, in the op that shows it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping

from byoc_mlir.backends import Backend, Blob, RegionModule, register_backend
from byoc_mlir.backends.base import Rule
from byoc_mlir.backends.region import kind_of, nodes_of


class Fault(BaseException):
    """Error that no code expects."""


@register_backend
class Faulty(Backend):
    """Backend that dies on `Abs`, waits on `Ceil`, raises on `Floor`; its square roots and
    exponentials are 7.
    """

    name = "faulty"

    def op_rules(self) -> Mapping[str, Rule]:
        return dict.fromkeys(("abs", "ceil", "exp", "floor", "sqrt"), lambda op: None)

    def codegen(self, region, context):
        (op,) = nodes_of(region)
        kind = kind_of(op)
        if kind == "floor":
            raise Fault("floor")
        return Blob.of(FaultyModule(kind))


class FaultyModule(RegionModule):
    """Region's module, which has the fault."""

    def __init__(self, kind: str):
        self.kind = kind

    @classmethod
    def load(cls, data: bytes):
        return cls(data.decode())

    def save(self) -> bytes:
        return self.kind.encode()

    def get_function(self, symbol: str):
        def run(inputs, outputs):
            if self.kind == "abs":
                os.kill(os.getpid(), signal.SIGSEGV)
            if self.kind == "ceil":
                time.sleep(1000)
            outputs[0].fill(7)

        return run
