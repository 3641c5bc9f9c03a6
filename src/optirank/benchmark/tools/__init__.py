"""Scripts that run one tool on one whole task, each in a process of its own."""
