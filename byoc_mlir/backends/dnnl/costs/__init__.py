"""Latencies of ops in oneDNN: measured, or else estimated."""
