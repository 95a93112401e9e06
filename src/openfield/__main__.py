"""`python -m openfield` is the command line, for when the script is not on the path."""

from openfield.cli import main

if __name__ == "__main__":
    main()
