"""Binding of NVIDIA's driver and libraries, for the device `cuda` and all backends on it.

| module | has |
| --- | --- |
| `driver` | the driver's library, and code around calls of the driver |
| `gpu` | the GPU of this machine, or why there is none |
| `region_functions` | functions that the code of all regions on a GPU has |
| `libraries` | libraries of the toolkit in wheels: found, loaded, and their failures in code |
"""
