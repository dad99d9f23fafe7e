"""Are our grammars Lark's, and how fast are their masks? Part one: agreement.

    python -m bench.grammars --what agreement --vocabulary ../shared/data/llama3.tiktoken
    python -m bench.grammars --what speed --vocabulary ../shared/data/llama3.tiktoken

agreement: Lark's own parser (LALR, contextual lexer, PythonIndenter for Python) is the oracle. Every text that it
accepts is taken token by token under Llama 3's 128,256 tokens: each token must be in the mask, and the end allowed at
the end. Then, for random edits of one byte, each by itself, both must say the same. Texts: the files of the standard
library for Python (python-lark: the grammar in the lark package; python: ours), made sentences for the others.

speed: from the text of a grammar to its first mask, in new processes and again, and µs of mask and advance over a
corpus, beside the peers that can express the grammar. Saved as JSON in bench/results/.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from constrain.base.errors import ConstrainError
from constrain.vocabulary.vocabulary import Vocabulary

from ..corpus import ENDS, SIZE, SPECIAL, Llama3
from ..maskbench import names
from ..measure import CLOCKS
from ..report import commit, machine, versions
from . import agreement
from .languages import LANGUAGES, Language, Text, language, library, missing, sentences
from .oracle import Oracle

WIDTH = 150
ENGINES = ("constrain", "llguidance", "xgrammar", "syncode")


def main(arguments: list[str] | None = None) -> int:
    """Runs one part; 0, 1 if there was any disagreement."""
    options = parse(arguments)
    console = Console()
    console.width = max(console.width, WIDTH)
    for name in options.languages:
        if name in missing():
            console.print(f"{name}: skipped, there is no grammar of it yet", style="yellow", highlight=False)
    options.languages = [name for name in options.languages if name not in missing()]
    if options.what == "speed":
        from . import speed

        return speed.main(options, console)
    rows = {}
    for name in options.languages:
        try:
            rows[name] = agree(language(name), options, console)
        except ConstrainError as error:
            console.print(f"{name}: we refuse the grammar: {error}", style="red", highlight=False, markup=False)
            rows[name] = {"refused": str(error), "disagreements": 1}
    show(rows, console)
    path = save("grammars-agreement", {"languages": rows}, options)
    console.print(f"saved as {path}", highlight=False)
    return int(any(row["disagreements"] for row in rows.values()))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.grammars", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--what", choices=("agreement", "speed"), default="agreement")
    parser.add_argument("--vocabulary", type=Path, default=Path("../shared/data/llama3.tiktoken"))
    parser.add_argument(
        "--languages", type=names(LANGUAGES), default=list(LANGUAGES), metavar="A,B", help=", ".join(LANGUAGES)
    )
    parser.add_argument("--files", type=int, help="so many files of the standard library, drawn with --seed (all)")
    parser.add_argument("--tests", action="store_true", help="the library's own tests too")
    parser.add_argument("--sentences", type=int, default=300, help="made sentences of each other language (300)")
    parser.add_argument("--edits", type=int, default=1000, help="edits of each text (1000)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of a language; then no text is begun")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--engines", type=names(ENGINES), default=list(ENGINES), metavar="A,B", help=", ".join(ENGINES))
    parser.add_argument("--repeat", type=int, default=5, help="processes for each first mask (5)")
    parser.add_argument("--tokens", type=int, default=20_000, help="of each corpus that speed is measured on (20,000)")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a round over a corpus (60)")
    parser.add_argument("--patience", type=float, default=120.0, help="seconds to wait for a first mask (120)")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: on a busy machine (wall)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="pin the engines to this core")
    parser.add_argument("--data", type=Path, default=Path("../shared/data/maskbench-dev.jsonl.gz"), help="JSON texts")
    parser.add_argument("--syncode", type=Path, help="a Python in which syncode is installed")
    parser.add_argument("--syncode-store", type=Path, help="its mask stores are kept here; else each is made anew")
    parser.add_argument("--syncode-seconds", type=float, default=900.0, help="limit of its first mask and corpus (900)")
    parser.add_argument(
        "--results", type=Path, default=Path(__file__).parents[1] / "results", help="folder for the JSON"
    )
    return parser.parse_args(arguments)


def texts_of(tongue: Language, options: argparse.Namespace) -> list[Text]:
    """The texts of a language, in random order: a run that is cut short has seen some of everything."""
    if tongue.made:
        return list(sentences(tongue.name, options.sentences, options.seed))
    texts = list(library(options.tests))
    random.Random(options.seed).shuffle(texts)
    return texts[: options.files]


def agree(tongue: Language, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """One language through both, as a row."""
    began = time.monotonic()
    encoding = Llama3(options.vocabulary)
    vocabulary = Vocabulary.from_tiktoken(options.vocabulary, special=SPECIAL, eos_ids=ENDS, size=SIZE)
    oracle = Oracle(tongue.text, tongue.start, tongue.lexer, tongue.indented)
    made = agreement.constraint(tongue, vocabulary)
    texts = texts_of(tongue, options)
    agreement.compare(
        min(texts, key=lambda text: len(text.content)), oracle, made, encoding, 10, options.seed
    )  # kernels
    found = []
    for one in agreement.run(
        texts, oracle, made, encoding, options.edits, options.seed, options.seconds, options.processes
    ):
        found.append(one)
        for example in one.examples:
            console.print(f"{tongue.name}: {one.name}: {example}", markup=False, highlight=False, soft_wrap=True)
        if len(found) % 25 == 0:
            done = time.monotonic() - began
            print(f"{tongue.name}: {len(found)} of {len(texts)} texts, {done:.0f} s", file=sys.stderr, flush=True)
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
        "files": [asdict(one) for one in sorted(found, key=lambda one: one.name)] if not tongue.made else [],
    }


def show(rows: dict[str, dict[str, Any]], console: Console) -> None:
    """The table, and what is left over."""
    columns = ("texts", "reached", "tokens", "edits", "edits that both accept", "texts that differ",
               "edits that differ", "edits read whole", "mistakes of the benchmark")  # fmt: skip
    table = Table(title="Lark and we, the same verdict?", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("language", no_wrap=True)
    for label in (*columns, "agreement"):
        table.add_column(label, justify="right")
    rows = {name: row for name, row in rows.items() if "refused" not in row}
    for name, row in rows.items():
        asked = row["reached"] + row["edits"]
        share = 1 - row["disagreements"] / asked if asked else float("nan")
        table.add_row(name, *(f"{row[label]:,}" for label in columns), f"{share:.6%}")
    console.print(table)
    for name, row in rows.items():
        console.print(f"{name}: {row['verdicts']}, {row['bytes']:,} bytes, {row['seconds']:.0f} s", highlight=False)


def save(name: str, found: dict[str, Any], options: argparse.Namespace) -> Path:
    """Writes the results with everything that is needed to judge and to repeat them; the file's path."""
    now = datetime.datetime.now(datetime.timezone.utc)
    document = {
        "question": __doc__.splitlines()[0] if __doc__ else "",
        "command": " ".join(["python -m bench.grammars", *sys.argv[1:]]),
        "date": now.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **versions()},
        "options": {key: str(value) if isinstance(value, Path) else value for key, value in vars(options).items()},
        **found,
    }
    options.results.mkdir(parents=True, exist_ok=True)
    path: Path = options.results / f"{name}-{now:%Y-%m-%d-%H%M}.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return path


if __name__ == "__main__":
    sys.exit(main())
