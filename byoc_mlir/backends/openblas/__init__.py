"""OpenBLAS as a backend. See `docs/backends.md`."""
