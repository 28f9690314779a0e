"""From `relay` to `linalg` on tensors, one file per family of ops."""
