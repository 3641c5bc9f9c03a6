"""The experiments: tasks, runs, statistics, tables, figures and reports."""
