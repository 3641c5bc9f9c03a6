"""``python -m optirank_lab``: the command line."""

from optirank_lab.cli import main

if __name__ == "__main__":
    main()
