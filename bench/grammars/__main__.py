"""Do our grammars accept what Lark accepts, and how fast are their masks?

    python -m bench grammars --what agreement
    python -m bench grammars --what speed

agreement: Lark's own parser (LALR, contextual lexer, PythonIndenter for Python) is the oracle. Every text that it
accepts is matched token by token under Llama 3's 128,256 tokens: each token must be in the mask, and an end token at
the end. Then both must agree on random edits of one byte each. Texts: the files of the standard library for Python
(python-lark: the grammar in the lark package; python: ours), random sentences for the others.

speed: from the text of a grammar to its first mask, in new processes and again, and µs of mask and advance over a
corpus, beside the peers that can express the grammar. Saved as JSON in bench/results/.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from constrain.base.errors import ConstrainError
from constrain.vocabulary.vocabulary import Vocabulary

from ..corpus import ENDS, SIZE, SPECIAL, Llama3
from ..options import build_parser, split_names
from ..record import write_result
from ..tables import build_table, print_table
from . import agreement, speed
from .languages import LANGUAGES, Language, Text, draw_sentences, list_library_files, list_missing, load_language
from .oracle import Oracle

ENGINES = ("constrain", "llguidance", "xgrammar", "syncode")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one part. Return the exit code: 1 if there was any disagreement."""
    options = read_options(arguments)
    console = Console()
    for name in options.languages:
        if name in list_missing():
            console.print(f"{name}: skipped, there is no grammar of it yet", style="yellow", highlight=False)
    options.languages = [name for name in options.languages if name not in list_missing()]
    if options.what == "speed":
        write_result(options, {"rows": speed.measure_all(options, console)}, "speed")
        return 0
    rows = {}
    for name in options.languages:
        try:
            rows[name] = compare_language(load_language(name), options, console)
        except ConstrainError as error:
            console.print(f"{name}: we refuse the grammar: {error}", style="red", highlight=False, markup=False)
            rows[name] = {"refused": str(error), "disagreements": 1}
    print_agreement(rows, console)
    write_result(options, {"languages": rows}, "agreement")
    return int(any(row["disagreements"] for row in rows.values()))


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = build_parser(
        "grammars", __doc__, "data", "vocabulary", "seed", "seconds", "jobs", "repeat", "clock", "core", "results",
        engines=ENGINES, seconds=float("inf"), jobs=len(os.sched_getaffinity(0)), repeat=5,
    )  # fmt: skip
    parser.add_argument("--what", choices=("agreement", "speed"), default="agreement")
    parser.add_argument(
        "--languages", type=split_names(LANGUAGES), default=list(LANGUAGES), metavar="A,B", help=", ".join(LANGUAGES)
    )
    parser.add_argument(
        "--files", type=int, help="number of files of the standard library, drawn with --seed (default: all)"
    )
    parser.add_argument("--tests", action="store_true", help="with the tests of the standard library")
    parser.add_argument("--sentences", type=int, default=300, help="random sentences of each other language")
    parser.add_argument("--edits", type=int, default=1000, help="edits of each text")
    parser.add_argument("--tokens", type=int, default=20_000, help="tokens of each corpus for speed")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a round over a corpus")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds to wait for a first mask")
    parser.add_argument("--syncode", type=Path, help="a Python in which syncode is installed")
    parser.add_argument("--syncode-store", type=Path, help="folder of its mask stores (default: new ones each time)")
    parser.add_argument("--syncode-seconds", type=float, default=900.0, help="limit of its first mask and corpus")
    return parser.parse_args(arguments)


def choose_texts(language: Language, options: argparse.Namespace) -> list[Text]:
    """Return the texts of a language in random order, so that a run that ends early has seen all kinds."""
    if language.made:
        return list(draw_sentences(language.name, options.sentences, options.seed))
    texts = list(list_library_files(options.tests))
    random.Random(options.seed).shuffle(texts)
    return texts[: options.files]


def compare_language(language: Language, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Compare Lark and us on one language. Return the row."""
    began = time.monotonic()
    encoding = Llama3(options.vocabulary)
    vocabulary = Vocabulary.from_tiktoken(options.vocabulary, special=SPECIAL, eos_ids=ENDS, size=SIZE)
    oracle = Oracle(language.text, language.start, language.lexer, language.indented)
    made = agreement.compile_language(language, vocabulary)
    texts = choose_texts(language, options)
    agreement.compare_text(
        min(texts, key=lambda text: len(text.content)), oracle, made, encoding, 10, options.seed
    )  # loads kernels
    found = []
    for one in agreement.compare_texts(
        texts, oracle, made, encoding, options.edits, options.seed, options.seconds, options.jobs
    ):
        found.append(one)
        for example in one.examples:
            console.print(f"{language.name}: {one.name}: {example}", markup=False, highlight=False, soft_wrap=True)
        if len(found) % 25 == 0:
            done = time.monotonic() - began
            print(f"{language.name}: {len(found)} of {len(texts)} texts, {done:.0f} s", file=sys.stderr, flush=True)
    verdicts = Counter(one.verdict for one in found)
    wrong = sum(count for verdict, count in verdicts.items() if verdict not in ("accepted", "refused", "not UTF-8"))
    return {
        "texts": len(texts),
        "reached": len(found),
        "bytes": sum(one.size for one in found),
        "verdicts": dict(verdicts),
        "tokens": sum(one.tokens for one in found),
        "edits": sum(one.edits for one in found),
        "edits that both accept": sum(one.kept for one in found),
        "texts that differ": wrong,
        "edits that differ": sum(one.differences for one in found),
        "disagreements": wrong + sum(one.differences for one in found),
        "edits read whole": sum(one.checked for one in found),
        "mistakes of the benchmark": sum(one.mistakes for one in found),
        "seconds": time.monotonic() - began,
        "examples": {one.name: one.examples for one in found if one.examples},
        "files": [asdict(one) for one in sorted(found, key=lambda one: one.name)] if not language.made else [],
    }


def print_agreement(rows: dict[str, dict[str, Any]], console: Console) -> None:
    """Print the table, and verdicts and times by language."""
    columns = ("texts", "reached", "tokens", "edits", "edits that both accept", "texts that differ",
               "edits that differ", "edits read whole", "mistakes of the benchmark")  # fmt: skip
    table = build_table("Lark and we, the same verdict?", ["language"], (*columns, "agreement"))
    rows = {name: row for name, row in rows.items() if "refused" not in row}
    for name, row in rows.items():
        judged = row["reached"] + row["edits"]
        share = 1 - row["disagreements"] / judged if judged else float("nan")
        table.add_row(name, *(f"{row[label]:,}" for label in columns), f"{share:.6%}")
    print_table(table, console)
    for name, row in rows.items():
        console.print(f"{name}: {row['verdicts']}, {row['bytes']:,} bytes, {row['seconds']:.0f} s", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
