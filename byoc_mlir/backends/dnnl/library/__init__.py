"""oneDNN's C interface: its constants, layouts and calls, without an op of the IR."""
