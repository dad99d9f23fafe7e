"""The options that benches share, each declared once.

    options = build_parser("scaling", __doc__, "vocabulary", "seconds", engines=ENGINES).parse_args(arguments)

A bench names the shared options that it has, changes defaults by keyword, and adds its own options to the parser. The
help text ends with the meaning of the columns of its tables, from the registry.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from .checkpoints import BASELINE, CHECKPOINTS
from .corpus import Case, choose_cases, load_cases
from .measure import CLOCKS
from .registry import BENCHES

__all__ = ["DATA", "build_parser", "read_cases", "split_names"]

DATA = Path("../shared/data")
RESULTS = Path(__file__).parent / "results"
SCHEMAS = ("sample", "all", "ids")
"""Mutually exclusive options."""
SHARED: dict[str, dict[str, Any]] = {
    "data": {"type": Path, "default": DATA / "maskbench-dev.jsonl.gz", "help": "schemas with instances, .jsonl[.gz]"},
    "vocabulary": {"type": Path, "default": DATA / "llama3.tiktoken", "help": "the file of ranks of Llama 3"},
    "sample": {"type": int, "metavar": "N", "help": "number of schemas, drawn with --seed"},
    "all": {"action": "store_true", "help": "every schema"},
    "ids": {"type": lambda text: text.split(","), "default": [], "metavar": "A,B", "help": "the schemas of these ids"},
    "seed": {"type": int, "default": 0, "help": "of everything that is drawn at random"},
    "seconds": {"type": float, "default": 10.0, "help": "limit of time per item"},
    "mebibytes": {"type": int, "default": 2048, "help": "limit of memory per item, beyond what was prepared"},
    "clock": {"choices": CLOCKS, "default": "wall", "help": "cpu for a busy machine, see bench/measure.py"},
    "core": {"type": int, "default": max(os.sched_getaffinity(0)), "help": "the core that workers are pinned to"},
    "jobs": {"type": int, "default": 1, "help": "processes side by side"},
    "repeat": {"type": int, "default": 3, "help": "how often each measurement is repeated"},
    "only": {"default": "", "metavar": "WORD", "help": "rows with this in their name"},
    "checkpoint": {"default": BASELINE, "help": f"weights of the embedded model: {', '.join(CHECKPOINTS)} or a folder"},
    "results": {"type": Path, "default": RESULTS, "help": "folder of results; written below it, in one per commit"},
}


class Parser(argparse.ArgumentParser):
    """A parser that adds the name and the arguments of the bench to the options, for the file of results."""

    bench: str

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """Parse; the namespace has `bench`, the name, and `arguments`, the command line as it was."""
        given = sys.argv[1:] if args is None else list(args)
        options: argparse.Namespace = super().parse_args(given, namespace)
        options.bench, options.arguments = self.bench, given
        return options


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help formatter that preserves the lines of the description and appends defaults."""

    def _get_help_string(self, action: argparse.Action) -> str:
        text = action.help or ""
        silent = action.default in ("", argparse.SUPPRESS) or isinstance(action.default, bool)
        plain = isinstance(action.default, (int, float, str, Path)) and not silent
        return f"{text} (%(default)s)" if plain and action.option_strings else text


def build_parser(
    name: str, document: str | None, *shared: str, engines: Collection[str] | None = None, **defaults: Any
) -> Parser:
    """Return the parser of a bench.

    name: of the bench in the registry. document: docstring of the module. shared: options of SHARED that it has.
    engines: the known engines, for `--engines`, by default all of them. defaults: replace those of SHARED, and by
    `engines_default` the engines that run.
    """
    parser = Parser(
        prog=f"python -m bench {name}", description=document, formatter_class=HelpFormatter,
        epilog=textwrap.fill(f"columns: {BENCHES[name].columns}", 100),
    )  # fmt: skip
    parser.bench = name
    group = parser.add_mutually_exclusive_group() if set(SCHEMAS) & set(shared) else parser
    if engines is not None:
        chosen = defaults.pop("engines_default", list(engines))
        parser.add_argument(
            "--engines", type=split_names(engines), default=chosen, metavar="A,B", help=", ".join(engines)
        )
    for option in shared:
        where = group if option in SCHEMAS else parser
        where.add_argument(f"--{option}", **SHARED[option])  # type: ignore[attr-defined]
    parser.set_defaults(**defaults)
    return parser


def split_names(known: Collection[str]) -> Callable[[str], list[str]]:
    """Return an argument type: names of `known`, separated by commas."""

    def split(text: str) -> list[str]:
        chosen = text.split(",")
        if wrong := [name for name in chosen if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: not one of {', '.join(known)}")
        return chosen

    return split


def read_cases(options: argparse.Namespace) -> list[Case]:
    """Return the schemas that --data, --sample, --all, --ids and --seed name. Exits with 2 if they cannot be read."""
    sample = None if getattr(options, "all", False) else options.sample
    try:
        return choose_cases(load_cases(options.data), sample=sample, seed=options.seed, ids=getattr(options, "ids", ()))
    except (OSError, ValueError) as error:
        print(f"python -m bench {options.bench}: {error}", file=sys.stderr)
        raise SystemExit(2) from error
