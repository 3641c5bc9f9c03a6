"""From stored units to statistics, tables, figures and pages."""
