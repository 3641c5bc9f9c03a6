"""Thin scikit-learn classes over the solver."""
