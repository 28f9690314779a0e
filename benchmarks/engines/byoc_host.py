"""Engine for this project's host compiler alone."""

from __future__ import annotations

from engines import byoc


class Engine(byoc.Engine):
    """Executable for `targets=()`."""

    targets = ()
