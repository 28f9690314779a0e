"""Compiled programs in files and pickles."""
