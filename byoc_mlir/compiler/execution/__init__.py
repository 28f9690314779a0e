"""Executables: the kind that each model needs, and the parts that `compile` compiles
immediately.
"""
