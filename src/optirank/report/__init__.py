"""Drawing functions behind `optirank.pl` and the pages."""
