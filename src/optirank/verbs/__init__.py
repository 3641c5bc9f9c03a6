"""From a file to a model, from a model to labels, and how good these are."""
