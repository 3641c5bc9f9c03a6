"""The `optirank` command: one small module a command, no logic."""
