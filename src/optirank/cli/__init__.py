"""The `optirank` command: one small module a command, no logic."""

from optirank.cli.app import main

__all__ = ["main"]
