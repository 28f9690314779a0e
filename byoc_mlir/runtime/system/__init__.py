"""The processor and the operating system, as compiled code meets them."""
