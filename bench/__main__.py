"""Run a bench by its name, or print the list: `python -m bench`, `python -m bench NAME [options]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .registry import BENCHES, load_main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench that the first argument names. Return its exit code, or 2 if there is no such bench."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if not given or given[0] in ("-h", "--help"):
        for name, bench in BENCHES.items():
            print(f"{bench.question}\n    python -m bench {f'{name} {bench.example}'.strip()}")
        print("\nOptions and the meaning of the columns: python -m bench NAME --help")
        return 0
    if ".".join(given[:2]) in BENCHES:  # `faithful real` is `faithful.real`
        given = [".".join(given[:2]), *given[2:]]
    if given[0] not in BENCHES:
        print(f"python -m bench: no bench {given[0]!r}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    return load_main(given[0])(given[1:])


if __name__ == "__main__":
    sys.exit(main())
