"""Models in files and in memory: read, and checked before anything else looks at them."""
