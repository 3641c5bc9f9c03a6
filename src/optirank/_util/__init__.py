"""What every room may use: files, numbers of workers, lists of names, progress."""
