"""From counts to expression values, and the choice of genes."""
