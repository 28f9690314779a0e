"""C source for element-wise ops: the teaching example of backends that generate C."""
