"""Softmax of rows that lie side by side in memory."""
