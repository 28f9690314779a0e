"""Interfaces of compiled code to the processor and the operating system."""
