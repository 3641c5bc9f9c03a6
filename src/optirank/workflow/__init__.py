"""From a file to a model, from a model to labels, and how good these are."""

METHODS = {
    "panel": "optirank.workflow.methods:train_panel",
    "optirank": "optirank.workflow.methods:train_settings",
    "rank-lr": "optirank.workflow.methods:train_settings",
}
"""The methods of ``train``: a module and a function of it, of the prepared samples, the
options and a callback for the progress, which returns a `train.Fitted`."""
