"""The host compiler: from `relay` to object code."""
