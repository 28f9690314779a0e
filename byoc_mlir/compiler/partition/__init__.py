"""Placement of a model's parts: backends, the host, and the fallback interpreter."""
