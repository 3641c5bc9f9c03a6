"""Choosing settings: families of classifiers with their grids, folds, the search,
the choice.
"""
