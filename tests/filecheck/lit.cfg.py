import os
import sys
from pathlib import Path

import lit.formats

config = globals()["config"]  # lit puts it there before it runs this file
config.name = "byoc_mlir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
config.substitutions.append(("%backends", str(Path(__file__).parent / "backends.py")))
config.maxIndividualTestTime = 300  # only what hangs takes longer, on a busy machine too
# The tree that the tests stand in, also where another one is installed (a git worktree).
config.environment["PYTHONPATH"] = str(Path(__file__).parents[2])
config.environment["BYOC_CACHE"] = "off"
