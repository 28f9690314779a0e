"""Listed samples of each Relay op: static shapes, and whichever of their sizes a test makes
symbolic.
"""
