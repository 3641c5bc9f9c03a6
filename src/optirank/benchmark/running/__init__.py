"""The engine: units of work, planned, computed by workers and stored."""
