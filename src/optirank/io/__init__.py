"""Readers and writers of expression data, and the names of genes."""
