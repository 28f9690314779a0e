"""What holds for all tests."""

from __future__ import annotations

import os

# Tests compile what they test, in subprocesses too, and leave no files in the user's folders.
os.environ["BYOC_CACHE"] = "off"
os.environ.pop("BYOC_CACHE_DIR", None)
os.environ["BYOC_STRICT"] = "on"  # a defect that users are spared is one all the same
