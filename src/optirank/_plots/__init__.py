"""The plots of :mod:`optirank.pl` that need more than a few lines."""
