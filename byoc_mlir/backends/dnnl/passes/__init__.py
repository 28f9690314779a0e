"""What brings a region to the IR that code is generated from: one pass in a file."""
