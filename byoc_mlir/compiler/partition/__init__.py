"""What takes which part of a model: backends, the host, and the fallback interpreter."""
