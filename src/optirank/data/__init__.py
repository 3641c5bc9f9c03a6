"""Profiles, the readers that make them, names of genes, and passes over samples."""
