"""Models that are split at data-dependent shapes into segments, which run one after the other."""
