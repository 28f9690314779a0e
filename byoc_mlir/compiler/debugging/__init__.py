"""Debugging of compiled models: wrong results, and the placement of single nodes."""
