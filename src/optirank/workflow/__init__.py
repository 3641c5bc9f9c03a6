"""From a file of profiles to a model, and from a model to labels: the workflow of a user."""
