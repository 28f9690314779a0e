"""oneDNN behind a JSON graph: the teaching example of a backend with an engine of its own."""
