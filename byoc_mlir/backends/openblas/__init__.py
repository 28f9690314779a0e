"""OpenBLAS as a backend. See `docs/openblas.md`."""
