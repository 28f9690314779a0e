"""A GPU for tests on machines without one: a recording driver that runs kernels on the processor."""
