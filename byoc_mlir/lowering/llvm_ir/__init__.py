"""From the `llvm` dialect to LLVM assembly and object code."""
