"""What ops raise where they are not to answer."""

from __future__ import annotations


class NotEagerError(NotImplementedError):
    """An op does not do this, or the model is wrong: the compiled program is to answer."""
