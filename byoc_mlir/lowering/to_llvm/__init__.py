"""From memref, scf, arith, math and vector down to the `llvm` dialect."""
