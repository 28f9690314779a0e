"""oneDNN called from generated C: the teaching example of C source that uses a vendor's library."""
