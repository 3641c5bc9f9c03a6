"""Ranks relative to a reference set: orders of samples, rank matrices, the
transformer.
"""
