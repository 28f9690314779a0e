"""A GPU for tests on machines without one: a driver that runs kernels on the processor."""
