"""The synthetic model, the registry of real data sets and the readers of files."""
