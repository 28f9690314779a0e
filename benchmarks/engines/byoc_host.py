"""This project's host compiler alone."""

from __future__ import annotations

from engines import byoc


class Engine(byoc.Engine):
    """An executable for `targets=()`."""

    targets = ()
