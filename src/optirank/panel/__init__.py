"""The panel model: genes that vote in pairs, chosen by elimination."""
