"""A report as one HTML page that needs no other files."""
