"""Server that compiles a model, runs it, and then forks its workers."""

from __future__ import annotations

from byoc_mlir.testing.forked import run_forked

SERVER = """
import os, signal, socket, threading
import numpy as np
import byoc_mlir
from process_models import convolution, inputs

WORKERS, CLIENTS, REQUESTS = 3, 4, 12
model = convolution()
feeds = [inputs(model, seed) for seed in range(REQUESTS)]
executable = byoc_mlir.compile(model, threads=2, fallback="allow")
expected = [executable.run(feed)["y"] for feed in feeds]

def serve(listening):
    signal.alarm(100)
    while True:
        with listening.accept()[0] as connection, connection.makefile("rwb") as stream:
            x = np.frombuffer(stream.read(feeds[0]["x"].nbytes), np.float32)
            y = executable.run({"x": x.reshape(feeds[0]["x"].shape)})["y"]
            stream.write(os.getpid().to_bytes(8, "little") + y.tobytes())
            stream.flush()

listening = socket.create_server(("127.0.0.1", 0))
workers = []
for _ in range(WORKERS):
    child = os.fork()
    if child == 0:
        try:
            serve(listening)
        finally:
            os._exit(4)
    workers.append(child)

answered_by, wrong = set(), []

def ask():
    for feed, y in zip(feeds, expected):
        with socket.create_connection(listening.getsockname(), timeout=90) as connection:
            with connection.makefile("rwb") as stream:
                stream.write(feed["x"].tobytes())
                stream.flush()
                answered_by.add(int.from_bytes(stream.read(8), "little"))
                if stream.read(y.nbytes) != y.tobytes():
                    wrong.append(feed)

clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
[client.start() for client in clients]
[client.join() for client in clients]
alive = [os.waitpid(worker, os.WNOHANG) == (0, 0) for worker in workers]
for worker in workers:
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)
assert not wrong, len(wrong)
assert all(alive), alive
assert answered_by <= set(workers), answered_by
print(len(answered_by), "workers answered")
"""


def test_forked_workers_answer_as_the_parent() -> None:
    assert "workers answered" in run_forked(SERVER, seconds=120)
