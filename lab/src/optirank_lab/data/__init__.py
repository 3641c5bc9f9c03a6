"""The registry of public data sets, and how each is built from its files."""
