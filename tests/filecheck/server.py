"""Server of the commands of RUN lines: each runs in a fork of this process, which has imported
them.

Imports take most of a command's time, and there are four hundred commands. A fork has its client's
arguments, folder, environment and files; commands do not share state. `server.py SOCKET` prints
`ready` when it is, and ends when its input is closed.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import socket
import sys
import traceback
from pathlib import Path

from filecheck.main import main as filecheck

from byoc_mlir.backends import backend_names, get_backend
from byoc_mlir.tools.byoc_opt import main as byoc_opt
from byoc_mlir.tools.passes import all_passes

COMMANDS = {"byoc-opt": byoc_opt, "filecheck": filecheck}
SECONDS = 300
"""Maximum time of a command in seconds."""


def preload() -> None:
    """Imports the modules that commands import on demand."""
    for load in all_passes().values():
        load()
    for name in backend_names():
        get_backend(name).passes()


def serve(address: str) -> None:
    """Forks for each client until the input ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(address)
        listener.listen(64)
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while not any(key.fileobj is sys.stdin for key, _ in selector.select()):
            client, _ = listener.accept()
            if os.fork() == 0:
                try:
                    _answer(client)
                finally:
                    os._exit(1)  # whatever happens: a fork is no server
            client.close()


def _answer(client: socket.socket) -> None:
    """Runs a client's command and sends it the exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.alarm(SECONDS)
    length, descriptors, *_ = socket.recv_fds(client, 8, 3)
    with client.makefile("rb") as stream:
        command, folder, environment = json.loads(stream.read(int.from_bytes(length, "little")))
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    with open(0) as sys.stdin, open(1, "w") as sys.stdout, open(2, "w", buffering=1) as sys.stderr:
        code = _exit_code(command)
    client.sendall(bytes([code]))


def _exit_code(command: list[str]) -> int:
    sys.argv = command
    try:
        code = COMMANDS[command[0]]()
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
        code = 1
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    return code if isinstance(code, int) else int(code is not None)


if __name__ == "__main__":
    try:
        preload()
        serve(sys.argv[1])
    finally:
        shutil.rmtree(Path(sys.argv[1]).parent)
