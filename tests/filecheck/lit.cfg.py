import os
import sys
from pathlib import Path

import lit.formats

config.name = "byoc_mlir"  # noqa: F821 - lit defines it
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # noqa: F821
config.substitutions.append(("%backends", str(Path(__file__).parent / "backends.py")))  # noqa: F821
config.maxIndividualTestTime = 60  # noqa: F821
# The tree that the tests stand in, also where another one is installed (a git worktree).
config.environment["PYTHONPATH"] = str(Path(__file__).parents[2])  # noqa: F821
config.environment["BYOC_CACHE"] = "off"  # noqa: F821
