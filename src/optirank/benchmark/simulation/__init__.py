"""The paper's synthetic experiment: settings, fits, storage, table, figures and report."""
