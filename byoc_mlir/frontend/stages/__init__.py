"""Models in which sizes depend on computed values, cut into parts that run one after the other."""
