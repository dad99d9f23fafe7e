"""How long from the text of a grammar to its first mask, and how long a mask and an advance, beside the peers?

Each engine has a process of its own, in which vocabulary, kernels and imports are prepared with a small grammar.
    cold    from the text to the first mask, each time in a new process forked from that one; the median
    kept    the same, if an earlier process has written the compiled parser to disk (ours only)
    again   the same, a second time in one process
    first   mask and advance over all texts of a corpus, token by token, in a new process
    second  the same texts once more
A text whose next token is not in the mask is `lost`: the engine's grammar is another language. A round that takes
longer than --limit is stopped. Peers use grammars written by hand for them (`peers`), which accept the corpora and need
not be the same language. Only rows of one run may be compared; on a busy machine use --clock cpu.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import subprocess
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from ..corpus import ENDS, Llama3, load_cases
from ..engines import Constrain, Llguidance, Xgrammar, is_allowed
from ..measure import CLOCKS
from ..report import compute_spread
from ..tables import build_table, print_table
from ..workers import fork_child, reap_child, stream_from_child
from .languages import PUBLISHED, Language, draw_sentences, list_library_files, load_language
from .peers import Inexpressible, peer_grammar

__all__ = ["ENGINES", "measure_all"]

SMALL = Language(
    "small",
    'start: ("(" start ")" | NAME | "if" NAME)+\nNAME: /[a-z]+/\n%ignore " "\n',
    "start",
    "contextual",
    False,
    True,
)
"""Compiled once before anything is measured: imports and kernels are not part of the cost of a grammar."""
SYNCODE = {"python-lark": "python", "json": "json", "sql": "sql", "c": "c"}
"""syncode's own grammar for each language. They differ from ours: JSON without escapes, another dialect of SQL."""


class ConstrainLark(Constrain):
    """constrain, from a Lark grammar. folder: of compiled parsers on disk, or None."""

    folder: Path | None = None

    def prepare(self, language: Language) -> None:
        self.language = language

    def compile(self, text: str = "") -> None:
        from constrain.compilation.constraint_compiler import compile_grammar
        from constrain.frontends.lark import to_grammar

        language = self.language
        grammar = to_grammar(language.text, start=language.start, lexer=language.lexer, folder=self.folder)  # type: ignore[arg-type]
        self.constraint = compile_grammar(grammar, self.vocabulary)


class LlguidanceLark(Llguidance):
    """llguidance, from a grammar in its dialect of Lark."""

    def prepare(self, language: Language) -> None:
        self.text = peer_grammar(language, "lark")

    def compile(self, text: str = "") -> None:
        grammar = self.matcher_type.grammar_from_lark(self.text)
        self.root = self.matcher_type(self.tokenizer, grammar, log_level=0)
        if self.root.is_error():
            raise Inexpressible(self.root.get_error())


class XgrammarEbnf(Xgrammar):
    """XGrammar, from a grammar in its EBNF."""

    def prepare(self, language: Language) -> None:
        self.text = peer_grammar(language, "ebnf")

    def compile(self, text: str = "") -> None:
        self.compiler.clear_cache()
        self.compiled = self.compiler.compile_grammar(self.text)


ENGINES: dict[str, Callable[[Llama3], Any]] = {
    "constrain": ConstrainLark,
    "llguidance": LlguidanceLark,
    "xgrammar": XgrammarEbnf,
}


def measure_all(options: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    """Measure each engine on all languages. Print and return the rows."""
    encoding = Llama3(options.vocabulary)
    corpora = {name: load_corpus(name, encoding, options) for name in options.languages}
    rows = []
    for name in options.engines:
        for found in (measure_syncode if name == "syncode" else measure_engine)(name, corpora, encoding, options):
            rows.append(found)
            console.print(json.dumps(shorten_row(found)), markup=False, highlight=False, soft_wrap=True)
    print_speed(rows, console)
    return rows


def load_corpus(name: str, encoding: Llama3, options: argparse.Namespace) -> list[list[int]]:
    """Return texts as tokens, about --tokens in all.

    Python: files of the standard library that Lark parses. JSON: instances of MaskBench if its file exists. Others:
    --sentences random sentences, which may have fewer tokens.
    """
    from .oracle import Oracle

    language = load_language(name)
    oracle = Oracle(language.text, language.start, language.lexer, language.indented)
    rng = random.Random(options.seed)
    if not language.made:
        texts = [text.content for text in list_library_files(tests=False)]
        rng.shuffle(texts)
    elif name == "json" and options.data.exists():
        cases = load_cases(options.data)
        rng.shuffle(cases)
        texts = [test.text.encode() for case in cases for test in case.tests if test.valid]
    else:
        texts = [text.content for text in draw_sentences(name, options.sentences, options.seed)]
    chosen: list[list[int]] = []
    count = 0
    for text in texts:
        if count >= options.tokens:
            break
        if oracle.accepts(text) and len(text) > 1:
            chosen.append(encoding.encode(text.decode()))
            count += len(chosen[-1])
    return chosen


def measure_engine(
    name: str, corpora: dict[str, list[list[int]]], encoding: Llama3, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield the rows of one engine, prepared in a process of its own."""
    yield from stream_from_child(partial(host_engine, name, corpora, encoding, options), name)


def host_engine(
    name: str, corpora: dict[str, list[list[int]]], encoding: Llama3, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Prepare an engine and yield its rows."""
    os.sched_setaffinity(0, {options.core})
    engine = ENGINES[name](encoding)
    clock = CLOCKS[options.clock]
    engine.prepare(SMALL)
    time_first_mask(engine, clock)
    walk_corpus(engine, [encoding.encode("(if a b) c")], clock, 9.0)
    gc.collect()
    gc.freeze()
    for label, texts in corpora.items():
        yield measure_language(engine, {"engine": name, "language": label}, texts, clock, options)


def measure_language(
    engine: Any, row: dict[str, Any], texts: list[list[int]], clock: Callable[[], int], options: argparse.Namespace
) -> dict[str, Any]:
    """Return the row with the figures of one engine on one language."""
    try:
        engine.prepare(load_language(row["language"]))
    except Inexpressible as why:
        return row | {"cannot": str(why)}
    once = run_with_patience(partial(time_cold_mask, engine, clock), options.patience)
    if isinstance(once, str):
        return row | {"cannot": once}
    row["cold ms"] = [
        once,
        *(run_with_patience(partial(time_cold_mask, engine, clock)) for _ in range(options.repeat - 1)),
    ]
    if isinstance(engine, ConstrainLark):
        with tempfile.TemporaryDirectory() as folder:
            engine.folder = Path(folder)
            row["kept ms"] = [
                run_with_patience(partial(time_cold_mask, engine, clock)) for _ in range(options.repeat + 1)
            ][1:]
            engine.folder = None
    rounds = run_with_patience(
        partial(run_rounds, engine, texts, clock, options.limit), options.patience + 3 * options.limit
    )
    return row | (rounds if isinstance(rounds, dict) else {"cannot": f"{rounds}, over the corpus"})


def run_with_patience(work: Callable[[], Any], patience: float | None = None) -> Any:
    """Run `work` in a process of its own. Return its result, or text if it dies or takes longer than
    `patience` seconds.
    """
    pid, pipe = fork_child(lambda out: out.send(work()))
    late = patience is not None and not pipe.poll(patience)
    try:
        return f"nothing within {patience:g} s" if late else pipe.recv()
    except EOFError:
        return "died"
    finally:
        pipe.close()
        reap_child(pid, kill=late)


def time_first_mask(engine: Any, clock: Callable[[], int]) -> float:
    """Return ms from the text of a grammar to its first mask."""
    begin = clock()
    engine.compile()
    engine.start()
    engine.mask()
    return (clock() - begin) / 1e6


def time_cold_mask(engine: Any, clock: Callable[[], int]) -> float | str:
    """Return ms to the first mask, or the error as text."""
    try:
        return time_first_mask(engine, clock)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"


def run_rounds(engine: Any, texts: list[list[int]], clock: Callable[[], int], limit: float) -> dict[str, Any]:
    """Measure two rounds over a corpus, and the first mask again."""
    time_first_mask(engine, clock)
    rounds = {label: walk_corpus(engine, texts, clock, limit) for label in ("first", "second")}
    return {**rounds, "again ms": [time_first_mask(engine, clock) for _ in range(3)]}


def walk_corpus(engine: Any, texts: list[list[int]], clock: Callable[[], int], limit: float) -> dict[str, Any]:
    """Measure one round: µs of every mask and every advance."""
    masks, advances, lost, done = array("q"), array("q"), [], 0
    end = time.monotonic() + limit
    for index, tokens in enumerate(texts):
        if time.monotonic() > end:
            break
        done += 1
        engine.start()
        for token in tokens:
            if time.monotonic() > end:
                break
            begin = clock()
            engine.mask()
            masks.append(clock() - begin)
            if not is_allowed(engine.words, token):
                lost.append(index)
                break
            begin = clock()
            engine.advance(token)
            advances.append(clock() - begin)
        else:
            engine.mask()
            if not any(is_allowed(engine.words, token) for token in ENDS):
                lost.append(index)
    return {
        "texts": done,
        "of": len(texts),
        "lost": lost,
        "mask µs": summarise_times(masks),
        "advance µs": summarise_times(advances),
    }


def summarise_times(nanoseconds: Any) -> dict[str, float]:
    """Return count, mean, quantiles and maximum, in µs."""
    return {"count": len(nanoseconds), **compute_spread(np.asarray(nanoseconds, float))}


def measure_syncode(
    name: str, corpora: dict[str, list[list[int]]], encoding: Llama3, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Measure syncode once for each language, with the interpreter of --syncode."""
    rows: list[dict[str, Any]] = []
    for label, texts in corpora.items():
        row: dict[str, Any] = {"engine": name, "language": label}
        rows.append(row)
        if label not in SYNCODE:
            row["cannot"] = "no grammar of its own, and it takes no look-around"
            continue
        if options.syncode is None:
            row["cannot"] = "not run here: --syncode PYTHON"
            continue
        job = {
            "vocabulary": str(options.vocabulary),
            "grammar": SYNCODE[label],
            "texts": texts,
            "seconds": options.limit,
            "again": options.syncode_store is not None,
        }
        with tempfile.TemporaryDirectory() as folder:
            store = options.syncode_store or folder
            root = str(Path(__file__).parents[2])
            environment = {**os.environ, "SYNCODE_CACHE": f"{store}/", "HF_HUB_OFFLINE": "1", "PYTHONPATH": root}
            try:
                answer = subprocess.run(
                    [options.syncode, "-m", "bench.grammars.syncode_peer"],
                    input=json.dumps(job),
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=options.syncode_seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                row["cannot"] = f"no first mask and corpus within {options.syncode_seconds:g} s"
                continue
        if answer.returncode:
            row["cannot"] = f"exit {answer.returncode}: {answer.stderr.strip().splitlines()[-1:]}"
            continue
        found = json.loads(answer.stdout)
        row["kept ms" if job["again"] else "cold ms"] = [found["first"]]
        masks = summarise_times([value * 1_000 for value in found["masks"]])
        row["first"] = {
            "texts": found["texts"],
            "of": len(texts),
            "lost": list(range(found["lost"])),
            "mask µs": masks,
            "advance µs": {"count": 0},
        }
    return rows


def shorten_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without its long values, for the log."""
    short = {key: value for key, value in row.items() if key not in ("first", "second")}
    for label in ("first", "second"):
        if found := row.get(label):
            short[label] = {"texts": found["texts"], "lost": len(found["lost"]), "mask µs": found["mask µs"]}
    return short


def print_speed(rows: list[dict[str, Any]], console: Console) -> None:
    """Print a table of first masks and one of steps."""
    firsts = ("cold", "kept on disk", "again")
    table = build_table("ms to the first mask, medians", ("language", "engine"), firsts)
    rows = sorted(rows, key=lambda row: row["language"])
    for row in rows:
        values = [f"{np.median(row[key]):,.1f}" if row.get(key) else "-" for key in ("cold ms", "kept ms", "again ms")]
        table.add_row(row["language"], row["engine"], *values)
    print_table(table, console)
    columns = ("mean", "p50", "p90", "p99", "max")
    figures = ("texts", "lost", "masks", *columns, "adv. mean", "p50", "p99")
    table = build_table("µs of masks and of advances over a corpus", ("language", "engine", "round"), figures)
    for row in rows:
        for label in ("first", "second"):
            if (found := row.get(label)) and found["mask µs"]["count"]:
                masks, advances = found["mask µs"], found["advance µs"]
                table.add_row(
                    row["language"],
                    row["engine"],
                    label,
                    f"{found['texts']:,}",
                    f"{len(found['lost']):,}",
                    f"{masks['count']:,}",
                    *(f"{masks[key]:,.1f}" for key in columns),
                    *(f"{advances[key]:,.1f}" if advances["count"] else "-" for key in ("mean", "p50", "p99")),
                )
    print_table(table, console)
    print_table(build_published_measures(rows), console)
    for row in rows:
        if "cannot" in row:
            console.print(f"{row['engine']}, {row['language']}: {row['cannot']}", markup=False, highlight=False)


def build_published_measures(rows: list[dict[str, Any]]) -> Any:
    """Return the measures of Park et al. 2025 (GreatGramma) on its languages: offline, from the text of a grammar to
    its first mask in a new process with no compiled parser on disk; online, the mean time of mask and advance per token
    in the first round, and quantiles of the masks.
    """
    columns = ("offline ms", "online µs, mean", "p50", "p99", "max", "tokens")
    table = build_table("As Park et al. 2025 measure: offline, and online per token", ("language", "engine"), columns)
    for row in rows:
        found = row.get("first")
        if row["language"] not in PUBLISHED or not found or not found["mask µs"]["count"] or not row.get("cold ms"):
            continue
        masks, advances = found["mask µs"], found["advance µs"]
        more = advances["mean"] if advances["count"] else 0.0
        table.add_row(
            row["language"],
            row["engine"],
            f"{np.median(row['cold ms']):,.1f}",
            f"{masks['mean'] + more:,.1f}",
            *(f"{masks[key]:,.1f}" for key in ("p50", "p99", "max")),
            f"{masks['count']:,}",
        )
    return table
