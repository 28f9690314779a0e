"""What the library computes wrongly from NaN and infinities, and how it is computed right.

Its code for some functions takes NaN for a number, or makes NaN of an infinity, differently in each
implementation. It is as fast as it is because of that, so it stays where a run's inputs are finite.
In other runs, such a primitive is replaced by one without the function, and a loop of our own.
"""

from __future__ import annotations
