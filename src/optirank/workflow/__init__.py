"""From a file to a model, from a model to labels, and how good these are."""

METHODS = {
    "panel": "optirank.workflow.train:train_panel",
    "optirank": "optirank.workflow.settings:train_settings",
    "rank-lr": "optirank.workflow.settings:train_settings",
}
"""The methods of ``train``: a function of the prepared samples, the options and a callback for the
progress, which returns a `settings.Fitted`."""
