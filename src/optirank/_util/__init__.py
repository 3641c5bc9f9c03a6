"""What every room may use: files, long work, words, numbers."""
