"""From `linalg` on memrefs to loops."""
