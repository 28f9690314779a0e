import atexit
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import lit.formats

config = globals()["config"]  # lit puts it there before it runs this file
here = Path(__file__).parent
config.name = "byoc_mlir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(here)
config.substitutions.append(("%backends", str(here / "backends.py")))
config.maxIndividualTestTime = 300  # only tests that hang take longer, under load too
# The tree that the tests stand in, also where another one is installed (a git worktree).
config.environment["PYTHONPATH"] = str(here.parents[1])
config.environment["BYOC_CACHE"] = "off"

# Commands are forks of one process that has imported them, see `server.py`.
address = str(Path(tempfile.mkdtemp(prefix="byoc-lit-")) / "socket")
server = subprocess.Popen(
    [sys.executable, str(here / "server.py"), address],
    env=config.environment,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
)
atexit.register(server.communicate)  # closes its input, and waits for its end
assert server.stdout is not None
assert server.stdout.readline() == b"ready\n", "the commands cannot be imported"
client = shlex.join([sys.executable, "-IS", str(here / "client.py"), address])
for command in ("byoc-opt", "filecheck"):
    config.substitutions.append((rf"(?<![\w/-]){command}(?![\w-])", f"{client} {command}"))
