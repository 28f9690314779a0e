"""Importers of rare ops.

They use only the public interface, and are loaded like the importers of installed packages: by
entry points, when a model has such an op.
"""
