"""Batch norms of tensors that are joined along their channels, without a joined copy of them."""
