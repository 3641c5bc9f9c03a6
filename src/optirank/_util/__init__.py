"""What every room may use: files, long work, names, matrices, metrics."""
