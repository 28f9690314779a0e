"""Child process that judges one case after the other, so that a crash costs only itself."""

from __future__ import annotations

import faulthandler
import os
import resource
import sys
from multiprocessing.connection import Connection

from byoc_mlir_fuzz.case import Case, Settings


def serve(connection: Connection, settings: Settings, log: str) -> None:
    """Receives pairs of a case and the oracles to omit, and sends back outcomes, until `None`
    comes.

    Between them it sends the name of each step, a text. The output of native code goes to `log`.
    """
    _redirect(log)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (settings.memory, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from byoc_mlir.backends import load_backend_module
    from byoc_mlir_fuzz.judge import judge

    for backend in settings.backends:
        load_backend_module(backend)
    connection.send("ready")
    while (task := connection.recv()) is not None:
        case: Case = task[0]
        connection.send(judge(case, settings, connection.send, task[1]))


def _redirect(log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    faulthandler.enable(sys.stderr)
