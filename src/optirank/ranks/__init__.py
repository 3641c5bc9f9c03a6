"""Ranks relative to a reference set: orders of samples, rank and co-rank matrices, the transformer."""
