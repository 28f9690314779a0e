"""Conversion of `relay` ops and composites to `dnnl` ops: one small function for each kind of
op.
"""
