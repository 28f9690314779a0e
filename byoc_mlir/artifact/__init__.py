"""Writing compiled models to files that leave Python. See docs/artifacts.md."""
