"""``python -m optirank``: the command line."""

from optirank.cli import main

if __name__ == "__main__":
    main()
