"""`python -m constrain`: the command line, where its script is not on the PATH."""

from .cli.app import main

if __name__ == "__main__":
    main()
