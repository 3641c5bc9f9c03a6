"""Fits on a GPU: many problems side by side on one order, written once for NumPy
and CuPy.
"""
