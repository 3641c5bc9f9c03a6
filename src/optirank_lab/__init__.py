"""The laboratory: the experiments of the paper, comparisons, and builders of public
data sets.
"""
