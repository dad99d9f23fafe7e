"""The tables of docs/comparison.md, one function each: which figures of a result it shows, and what they mean."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from .committed_results import list_peer_versions, load_newest_result

__all__ = ["TABLES", "ComparisonTable", "Row"]

KEYWORDS = Path(__file__).resolve().parents[2] / "docs" / "json-schema.md"
Better = Literal["less", "more"]
OURS = ("constrain",)
LLGUIDANCE = (*OURS, "llguidance")
MASKERS = (*LLGUIDANCE, "xgrammar")
GENERATORS = (*MASKERS, "outlines")


@dataclass(frozen=True)
class Row:
    """One measurement: a figure for each engine that has one; ours are the engines that are named constrain."""

    label: str
    figures: Mapping[str, float]
    better: Better = "less"

    def is_best(self, figure: float) -> bool:
        """Return whether no engine has a better figure."""
        return figure == (min if self.better == "less" else max)(self.figures.values())

    def find_ours(self) -> str:
        """Return the name of our engine in this row, the better of the two if both are in it."""
        ours = [engine for engine in self.figures if engine.startswith("constrain")]
        return (min if self.better == "less" else max)(ours, key=lambda engine: self.figures[engine])

    def find_best_peer(self) -> str | None:
        """Return the peer with the best figure, or None if there is no peer in this row."""
        peers = [engine for engine in self.figures if not engine.startswith("constrain")]
        if not peers:
            return None
        return (min if self.better == "less" else max)(peers, key=lambda engine: self.figures[engine])

    def is_ours_best(self) -> bool:
        """Return whether no peer has a better figure than ours."""
        return self.is_best(self.figures[self.find_ours()])


@dataclass(frozen=True)
class ComparisonTable:
    """A section. text: what was measured. unit: of the figures. source: file, machine, versions, command."""

    title: str
    text: str
    unit: str
    engines: Sequence[str]
    rows: Sequence[Row]
    source: str

    @property
    def anchor(self) -> str:
        """The id of the heading."""
        return re.sub(r"[^\w]+", "-", self.title.lower()).strip("-")


def describe_source(document: Mapping[str, Any], engines: Sequence[str]) -> str:
    """Return the sentence below a table: where its figures come from, and the command that measures them again."""
    machine, versions = document["machine"], list_peer_versions(document, engines)
    command = document["command"] or f"python -m bench {document['name']}"
    command = re.sub(r"^python -m bench\.", "python -m bench ", command)
    command = re.sub(r" (--results|--data|--vocabulary) \S+", "", command)
    return (
        f"*{str(document['date'])[:10]}, {machine['processor']} with {machine['cores']} "
        f"cores{'; ' if versions else ''}{versions}. Read from `bench/results/{document['path']}`, measured by "
        f"`{command}`.*"
    )


def build_keyword_table() -> ComparisonTable | None:
    """Count the verdicts of docs/json-schema.md, which `bench keyword_table` writes."""
    text = KEYWORDS.read_text("utf-8")
    found = re.search(r"^\| of (\d+) rows \| (.*?) \|\n\|[-:| ]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found, "docs/json-schema.md has no table of verdicts"
    engines = [name.replace("default style", "constrain, default style") for name in found[2].split(" | ")]
    engines[0] = "constrain, any style"
    rows = []
    for line in found[3].splitlines():
        label, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        rows.append(Row(label, dict(zip(engines, map(float, cells))), "more" if label == "enforced" else "less"))
    run = re.search(r"Run on ([\d-]+) with\n(.*?)\.\n", text)
    assert run, "docs/json-schema.md does not say when it was written"
    return ComparisonTable(
        "JSON Schema keywords",
        f"{found[1]} small schemas, each with documents that satisfy it and documents that break it, and what the "
        "engine made of them. A schema that is *refused* is an honest answer; an engine that *lets through* an "
        "invalid document, or cannot write a valid one (*over-constrains*), says nothing. The default style of "
        "`constrain` fixes the order of keys and the spelling of numbers.",
        "schemas", engines, rows,
        f"*{run[1]}; {run[2]}. Read from [JSON Schema, keyword by keyword](json-schema.md), measured by `python "
        "-m bench keyword_table`.*",
    )  # fmt: skip


MASKBENCH = {"constrain-any": "constrain, any style", "constrain": "constrain, default style",
             "llguidance": "llguidance", "xgrammar": "xgrammar"}  # fmt: skip
"""The engines of MaskBench that are compared, and what the tables call them."""


def build_real_schemas() -> ComparisonTable | None:
    """What engines make of real schemas with valid and invalid instances."""
    if (document := load_newest_result("maskbench")) is None:
        return None
    found = {row["engine"]: row for row in document["facts"]["exactness"] if row["mode"] == "warm"}
    count = max(row["schemas"] for row in found.values())
    shown: list[tuple[str, str, Better]] = [
        ("passing", "every instance judged right", "more"),
        ("refused", "refused", "less"),
        ("valid rejected", "a valid instance cannot be written", "less"),
        ("invalid accepted", "an invalid instance is accepted", "less"),
        ("out of time", "out of time", "less"),
    ]
    rows = [
        Row(label, {title: found[name][key] for name, title in MASKBENCH.items() if name in found}, better)
        for key, label, better in shown
    ]
    return ComparisonTable(
        "Real schemas",
        f"{count:,} schemas of MaskBench, drawn at random, with the instances that come with them. The default style "
        "of `constrain` writes keys in the order of the schema: what it cannot write is instances with another order.",
        "schemas", tuple(MASKBENCH.values()), rows, describe_source(document, tuple(MASKBENCH)),
    )  # fmt: skip


def build_mask_times() -> ComparisonTable | None:
    """Time of steps and first masks on real schemas."""
    if (document := load_newest_result("maskbench")) is None:
        return None
    found = {
        row["engine"]: row
        for row in document["facts"]["time"]
        if row["mode"] == "warm" and row["schemas"] == "common to all"
    }
    rows = [
        Row(
            f"{label}, {title}",
            {name: found[engine][key][figure] for engine, name in MASKBENCH.items() if engine in found},
        )
        for key, label in (("step µs", "a step"), ("first mask µs", "first mask"))
        for figure, title in (
            ("mean", "mean"),
            ("p50", "median"),
            ("p99", "99th percentile"),
            ("p99.9", "99.9th percentile"),
        )
    ]
    return ComparisonTable(
        "Masks of real schemas",
        f"Wall time on one core with the vocabulary of Llama 3, on the {found['constrain']['count']:,} of these "
        "schemas that all engines compile, each met for the first time: of a step, a mask and the token after it, and "
        "from the text of a schema to its first mask, in one process.",
        "µs", tuple(MASKBENCH.values()), rows, describe_source(document, tuple(MASKBENCH)),
    )  # fmt: skip


def build_first_masks() -> ComparisonTable | None:
    """Time from the text of a schema to its first mask."""
    if (document := load_newest_result("repeated")) is None:
        return None
    compilations: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in document["facts"]["rows"]:
        if row["engine"] in ("constrain", "llguidance"):
            compilations.setdefault(row["compilation"], {})[row["engine"]] = row
    rows = [
        Row(f"{compilation}, {label}", {engine: row[figure] for engine, row in found.items()})
        for compilation, found in compilations.items()
        for figure, label in (("p50", "median"), ("mean", "mean"), ("p99", "99th percentile"))
    ]
    return ComparisonTable(
        "First mask of a schema",
        "CPU time from the text of a schema to its first mask, over a sample of the schemas of MaskBench and the "
        "vocabulary of Llama 3 (128,256 tokens), threads that write files included. `constrain` keeps what it has "
        "compiled, in the process and on disk. The samples differ by the schemas that llguidance refuses.",
        "µs", LLGUIDANCE, rows, describe_source(document, LLGUIDANCE),
    )  # fmt: skip


def build_step_costs() -> ComparisonTable | None:
    """Instructions of a step, which do not depend on how busy a machine is."""
    if (document := load_newest_result("instructions")) is None:
        return None
    cases: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in document["facts"]["rows"]:
        if row["engine"] in ("constrain", "llguidance"):
            cases.setdefault(row["case"], {})[row["engine"]] = row
    rows = [
        Row(f"{case}, {label}", {engine: row[figure] / 1000 for engine, row in found.items()})
        for figure, label in (("warm", "a step"), ("first mask", "first mask"))
        for case, found in cases.items()
    ]
    return ComparisonTable(
        "Work of a step",
        "Instructions, counted by valgrind, of one step (a mask and an advance, along a text that was written "
        "before) and of a first mask, from Python, with the vocabulary of Llama 3.",
        "thousands of instructions", LLGUIDANCE, rows, describe_source(document, LLGUIDANCE),
    )  # fmt: skip


def build_batches() -> ComparisonTable | None:
    """Masks of a batch in one call."""
    if (document := load_newest_result("batches")) is None:
        return None
    found: dict[tuple[str, int], dict[str, float]] = {}
    for run in document["facts"]["runs"]:
        if run["threads"] == 1:
            found.setdefault((run["schemas"], run["rows"]), {})[run["engine"]] = run["mean µs"]
    rows = [
        Row(f"{schemas}, {count} {'row' if count == 1 else 'rows'}", figures)
        for (schemas, count), figures in found.items()
    ]
    return ComparisonTable(
        "Masks of a batch",
        "Time of a row of a batch (a mask and an advance), mean over the steps, on one thread. *New*: the texts "
        "are written for the first time under a schema; *known*: again.",
        "µs a row", MASKERS, rows, describe_source(document, MASKERS),
    )  # fmt: skip


def build_mask_application() -> ComparisonTable | None:
    """Masks applied to logits on the CPU."""
    if (document := load_newest_result("apply_masks")) is None:
        return None
    names = {"constrain": "constrain", "xgrammar": "xgrammar", "llguidance, torch compiled": "llguidance"}
    found: dict[tuple[int, str, str], dict[str, float]] = {}
    for run in document["facts"]["runs"]:
        if run["implementation"] in names and run["dtype"] != "float16":
            key = (run["rows"], run["dtype"], run["mask"])
            found.setdefault(key, {})[names[run["implementation"]]] = run["µs"]
    rows = [Row(f"{count} × 128,256 {dtype}, {mask}", figures) for (count, dtype, mask), figures in found.items()]
    return ComparisonTable(
        "Applying masks on the CPU",
        "Time to set the logits of all masked tokens to minus infinity, on one thread. *narrow*: few tokens are "
        "allowed; *wide*: nearly all; *half*: every other. For llguidance its function that torch compiles.",
        "µs", MASKERS, rows, describe_source(document, MASKERS),
    )  # fmt: skip


def build_grammars() -> ComparisonTable | None:
    """Masks of grammars of programming languages."""
    if (document := load_newest_result("grammars-speed")) is None:
        return None
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for row in document["facts"]["rows"]:
        if row.get("cold ms") and row.get("second", {}).get("texts") == row.get("second", {}).get("of"):
            found.setdefault(row["language"], {})[row["engine"]] = row
    rows = []
    for language, engines in found.items():
        compiled = {name: 1000 * median(row["cold ms"]) for name, row in engines.items()}
        rows.append(Row(f"`{language}`, grammar to first mask", compiled))
        for figure, label in (("mean", "mean"), ("p99", "99th percentile")):
            masks = {name: row["second"]["mask µs"][figure] for name, row in engines.items()}
            rows.append(Row(f"`{language}`, a mask, {label}", masks))
    return ComparisonTable(
        "Grammars",
        "Grammars of languages in Lark's notation, translated for the peers (see `bench/README.md` for what is "
        "lost in that), and masks along a corpus that was read before. Engines that did not read the whole "
        "corpus are left out.",
        "µs", MASKERS, rows, describe_source(document, MASKERS),
    )  # fmt: skip


def build_generation() -> ComparisonTable | None:
    """Tokens per second under a constraint, in parts of those without one."""
    found = {name: load_newest_result(f"decoding-plain-{name}") for name in ("demo", "random-100m", "random-1b")}
    documents = {name: document for name, document in found.items() if document is not None}
    if not documents:
        return None
    rows = []
    for name, document in documents.items():
        figures = {row["engine"]: row["ratio"] for row in document["facts"]["rows"]}
        rows.append(Row(f"`{name}`, tokens per second with a constraint over those without", figures, "more"))
    last = max(documents.values(), key=lambda document: str(document["date"]))
    return ComparisonTable(
        "Speed of generation",
        "Tokens per second under a constraint divided by those of the same program without one: 1 says that the "
        "constraint is free. Models: the embedded one, and random weights of 100 million and 1 billion "
        "parameters, on the CPU. The peers run as logits processors of transformers, `constrain` in its own "
        "Engine, which can write forced text without the model and may so be above 1.",
        "ratio", GENERATORS, rows, describe_source(last, GENERATORS),
    )  # fmt: skip


def build_budgets() -> ComparisonTable | None:
    """Answers within a budget of tokens."""
    if (document := load_newest_result("decoding-budgets-demo")) is None:
        return None
    counts = {row["engine"]: row for row in document["facts"]["rows"]}
    valid = {name: 100 * row["valid"] / row["answers"] for name, row in counts.items()}
    answers = ", ".join(f"{name} {row['answers']:,}" for name, row in counts.items())
    return ComparisonTable(
        "Answers within a budget of tokens",
        "Share of the answers that are valid documents of their schema when `max_tokens` is small. A peer stops "
        "there and leaves a document unfinished; `constrain` closes it in time, or refuses the request if the "
        f"shortest answer is longer than the budget. Answers: {answers}.",
        "% valid", GENERATORS, [Row("answers", valid, "more")],
        describe_source(document, GENERATORS),
    )  # fmt: skip


def build_memory() -> ComparisonTable | None:
    """Memory of a vocabulary and of a Constraint."""
    if (document := load_newest_result("memory")) is None:
        return None
    labels = {
        "prepared MB": "the vocabulary of Llama 3, prepared", "a schema, MB: mean": "a schema, mean",
        "p50": "a schema, median", "p90": "a schema, 90th percentile", "max": "a schema, most",
    }  # fmt: skip
    engines = [row for row in document["facts"]["rows"] if row["engine"] in MASKERS]
    rows = [Row(label, {row["engine"]: row[key] for row in engines}) for key, label in labels.items()]
    counts = ", ".join(f"{row['engine']} {row['schemas']}" for row in engines)
    return ComparisonTable(
        "Memory",
        "Pages of a process of its own: what a vocabulary takes, and by how much a schema lets the process grow when "
        f"its instances are walked. Schemas that were compiled, of {document['options']['sample']}: {counts}.",
        "MB", MASKERS, rows, describe_source(document, MASKERS),
    )  # fmt: skip


def build_start() -> ComparisonTable | None:
    """Time of a new process to its first mask, ours alone."""
    if (document := load_newest_result("start")) is None:
        return None
    rows = [Row(row["process"], {"constrain": row["ms"]["all"][0]}) for row in document["facts"]["rows"]]
    return ComparisonTable(
        "Start of a process",
        "Wall time of a new process from its start to the first mask, with kernels that were compiled before. "
        "*The floor* imports what a first mask cannot do without, and does nothing else: numpy, and in results before "
        "version 0.2 numba. The peers have not been measured here.",
        "ms", OURS, rows, describe_source(document, OURS),
    )  # fmt: skip


def build_test_data() -> ComparisonTable | None:
    """Hypothesis strategies from schemas."""
    if (document := load_newest_result("testing_strategies")) is None:
        return None
    counts, names = document["facts"]["rows"], ("constrain", "hypothesis-jsonschema")
    shown: list[tuple[str, str, Better]] = [
        ("served, %", "% of schemas for which it draws valid documents in time", "more"),
        ("with an invalid document", "schemas with an invalid document", "less"),
        ("documents per second, where all serve", "documents per second, where both serve", "more"),
    ]
    rows = [Row(label, {name: counts[name][key] for name in names}, better) for key, label, better in shown]
    return ComparisonTable(
        "Test data from schemas",
        f"Hypothesis strategies for {document['facts']['schemas']} schemas of MaskBench, "
        f"{document['facts']['examples']} documents each, at most {document['facts']['seconds']:.0f} s.",
        "as named", names, rows, describe_source(document, names),
    )  # fmt: skip


TABLES: tuple[Callable[[], ComparisonTable | None], ...] = (
    build_keyword_table, build_real_schemas, build_mask_times, build_first_masks, build_step_costs, build_batches,
    build_mask_application, build_grammars, build_generation, build_budgets, build_memory, build_start, build_test_data,
)  # fmt: skip
