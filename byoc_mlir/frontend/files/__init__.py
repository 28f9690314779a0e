"""Models in files and in memory: reading them, and checking them before further use."""
