"""`constrain` and `python -m constrain`: the command line.

Ctrl-C while its modules are imported, or while the process ends, is an exit code and no traceback, as elsewhere.
"""

import sys

__all__ = ["main"]

INTERRUPTED = 130


def main() -> None:
    """Run the script `constrain`; see `cli.app.main`."""
    try:
        from .cli.app import main as run_script

        run_script()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
