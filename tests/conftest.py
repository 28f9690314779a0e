"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import tempfile

from hypothesis import settings

# Tests compile what they test, in subprocesses too, and leave no files in the user's folders. How
# fast the machine is they measure for all: workers have the folder of who starts them.
os.environ["BYOC_CACHE"] = "rates"
if "PYTEST_XDIST_WORKER" not in os.environ:
    _folder = tempfile.TemporaryDirectory(prefix="byoc-rates-")
    os.environ["BYOC_CACHE_DIR"] = _folder.name
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):  # else each translates all of the package
        os.environ["PYTHONPYCACHEPREFIX"] = os.path.join(_folder.name, "bytecode")
os.environ["BYOC_STRICT"] = "on"  # a defect that users are spared is one all the same

# Seven thousand tests and all modules are not looked through for garbage again and again.
gc.set_threshold(50_000, 10, 50)

# A slow example says that the machine is busy.
settings.register_profile(
    "shared machine",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
)
settings.load_profile("shared machine")
