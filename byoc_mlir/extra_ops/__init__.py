"""Importers of ops that few models have. They use what the importers of users have, and are found
as those of installed packages are: by entry points, when a model has such an op.
"""
