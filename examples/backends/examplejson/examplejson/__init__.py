"""A graph format of its own with a runtime: the teaching example of backends that make blobs."""
