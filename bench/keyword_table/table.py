"""The table and its page: the drafts of each keyword, how constrain enforces it, and the verdict on every engine.

How a keyword is enforced comes from `describe_keywords`, like the output of `constrain check`, so both always agree.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

from constrain.cli.keyword_output import COLUMNS
from constrain.frontends.json_schema.reading.keywords import KEYWORDS
from constrain.frontends.json_schema.reports.keyword_report import describe_keywords

from .peers import ENGINES
from .probes import Probe, find_mislabelled

__all__ = [
    "VERDICTS",
    "Verdict",
    "build_page",
    "check_labels",
    "describe_enforcement",
    "format_drafts",
    "format_row",
    "judge_probe",
]

VERDICTS = {
    "enforced": "accepts every valid document of the row, and no invalid one",
    "refused": "rejects the schema with a deliberate error message",
    "over-constrains": "a valid document cannot be written",
    "lets through": "an invalid document can be written",
    "fails": "an internal error, when compiling the schema or while a document is written",
    "time-out": "no answer in 5 s of computing",
    "crash": "the process died",
}

UNEXPECTED_ERRORS = (AttributeError, KeyError, IndexError, TypeError, AssertionError)
"""Exceptions that indicate a bug in an engine rather than a deliberate refusal."""


@dataclass(frozen=True)
class Verdict:
    """word: one or two of VERDICTS. error: message of a refusal. over, under: documents that were judged wrong."""

    word: str
    error: str = ""
    over: list[str] = field(default_factory=list)
    under: list[str] = field(default_factory=list)


def judge_probe(name: str, probe: Probe) -> Verdict:
    """Judge one probe with one engine. A valid document must be accepted in some spelling, an invalid one in none."""
    try:
        accepts = prepare_engine(name)(probe.schema)
    except MemoryError:
        raise
    except BaseException as error:  # a Rust panic is not an Exception
        word = "fails" if isinstance(error, UNEXPECTED_ERRORS) or not isinstance(error, Exception) else "refused"
        return Verdict(word, f"{type(error).__name__}: {str(error)[:300]}")
    over, under = [], []
    for texts, valid in probe.texts():
        try:
            taken = [text for text in texts if accepts(text)]
        except MemoryError:
            raise
        except BaseException as error:
            return Verdict("fails", f"{type(error).__name__}: {str(error)[:300]}")
        if valid and not taken:
            over.append(texts[0][:100])
        if not valid:
            under += [text[:100] for text in taken[:1]]
    words = ["over-constrains"] * bool(over) + ["lets through"] * bool(under)
    return Verdict(", ".join(words) or "enforced", "", over, under)


@cache
def prepare_engine(name: str) -> Callable[[Any], Callable[[str], bool]]:
    """Return an engine, which is prepared once in a process."""
    return ENGINES[name]()


def check_labels(probes: Sequence[Probe]) -> None:
    """Raise ValueError if the `jsonschema` package disagrees with a label."""
    wrong = {probe.name: texts for probe in probes if (texts := find_mislabelled(probe))}
    if wrong:
        raise ValueError(f"the jsonschema package disagrees with the labels: {wrong}")


# ---- the columns that do not depend on a run ----------------------------------------------------------------------

DIALECTS = {4: "draft 4", 6: "draft 6", 7: "draft 7", 2019: "2019-09", 2020: "2020-12"}


@cache
def format_drafts(keyword: str) -> str:
    """Return the dialects of a keyword as text, from the table of keywords, or from the meta-schemas if
    it is not there.
    """
    known = {row.name: (row.since, row.until) for row in KEYWORDS}
    having = [draft for draft in DIALECTS if keyword in list_defined_keywords(draft)]
    since, until = known.get(keyword) or ((having[0], having[-1]) if having else (0, 0))
    if not since:
        return "none"
    if since == until:
        return DIALECTS[since]
    if until == 2020:
        return "all" if since == 4 else f"since {DIALECTS[since]}"
    return f"up to {DIALECTS[until]}" if since == 4 else f"{DIALECTS[since]} to {DIALECTS[until]}"


@cache
def list_defined_keywords(draft: int) -> frozenset[str]:
    """Return the keywords in the meta-schemas of a dialect, without deprecated ones."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    found: set[str] = set()
    for uri in REGISTRY:
        old = uri.startswith(f"http://json-schema.org/draft-{draft:02}/schema")
        if old or uri.startswith(f"https://json-schema.org/draft/{DIALECTS[draft]}/"):
            properties = REGISTRY.contents(uri).get("properties", {})
            found |= {name for name, schema in properties.items() if schema is True or not schema.get("deprecated")}
    return frozenset(found)


def describe_enforcement(probe: Probe) -> str:
    """Return how constrain enforces the keyword in the schema of a probe, in the words of `constrain check`."""
    titles = {how: title for title, hows, _ in COLUMNS for how in hows}
    rows = [row for row in describe_keywords(json.dumps(probe.schema)) if row.keyword == probe.keyword]
    rows.sort(key=lambda row: row.how in ("annotation", "structure"))
    chosen = rows[0]
    title = titles[chosen.how]
    if title == "frame":
        return "frame: counter" if chosen.how == "counter" else "frame: keys seen"
    return title


def format_row(probe: Probe, words: Mapping[str, str], names: Sequence[str]) -> str:
    """Return a row of the page: the columns that do not depend on a run, then a verdict for each engine."""
    example = json.dumps(probe.schema, ensure_ascii=False).replace("|", "\\|")
    cells = [
        f"`{probe.keyword}`" + (f" {probe.also}" if probe.also else ""),
        format_drafts(probe.keyword),
        describe_enforcement(probe),
    ]
    return f"| {' | '.join([*cells, *(words[name] for name in names)])} | `{example}` |"


# ---- the page -----------------------------------------------------------------------------------------------------

INTRODUCTION = """\
# JSON Schema, keyword by keyword

How constrain handles each keyword, and how other engines handle the same schema. Generated by a command that runs
all of them:

    python -m bench keyword_table --write docs/json-schema.md

Each row is a small schema with documents that satisfy it and documents that break it; the labels are those of the
`jsonschema` package {jsonschema}, formats asserted. Run on {date} with
{versions}.{missing}

## What the columns say

*How* is how constrain enforces the keyword **in this schema**, exactly as `constrain check` prints it for yours:

- **automaton**: by the states of automata over numbers and strings, and by the rules of the grammar.
- **frame**: the string, array or object that is being written has a frame on the stack, which counts its characters,
  items or members (*counter*), or stores the keys that have occurred (*keys seen*). Therefore `maxItems: 10000000`
  costs no more than `maxItems: 10`, and keys may occur in any order.
- **guard**: the value that is being written is compared with the earlier ones, and no prefix is allowed that can only
  become equal to one of them. Only `uniqueItems` over values that are not enumerated needs this.
- **asserts nothing**: by the specification.

All of them are exact, token by token. The results refer to the test documents of the row, so *enforced* means "for
these documents"; for constrain, `bench schema_suite` and `bench mask_errors` test much more.

{verdicts}

*constrain* is `Style.any()`, every spelling that RFC 8259 and the schema allow; *default style* writes keys in the
order of `properties`, numbers and constants in their usual spelling, and the white space of common JSON serialisers.
This is documented, and the reason why it over-constrains some rows. Every engine runs with a vocabulary of single
bytes, so that tokenisation cannot hide an error. XGrammar is not strict here (undeclared keys are allowed); the others
run with their default options.

Formats are enforced as far as an automaton can decide them. Left open, so that such texts are accepted: in `regex`,
whether the group exists that a reference names, whether two groups have one name, which character properties exist,
and ranges in reverse order with an escape or beyond ASCII; in `hostname`, what a label after `xn--` decodes to; in
`idn-email`, IDNA in the domain. An address literal in `email` is an IPv4 or IPv6 address as in RFC 3986, not in the
wider spelling of RFC 5321.

{summary}
"""


def build_page(
    probes: Sequence[Probe], found: Mapping[str, Sequence[Verdict]], date: str, versions: Mapping[str, str]
) -> str:
    """Return the whole page. found: by engine, a verdict for each probe."""
    shown = {name: title for name, title in TITLES.items() if name in found}
    absent = [name for name in ENGINES if name not in found]
    text = INTRODUCTION.format(
        jsonschema=versions["jsonschema"],
        date=date,
        versions=", ".join(f"{name} {version}" for name, version in versions.items() if name != "jsonschema"),
        missing=f" Not installed, and so not run: {', '.join(absent)}." if absent else "",
        verdicts="\n".join(f"- *{word}*: {meaning}." for word, meaning in VERDICTS.items() if is_used(word, found)),
        summary="\n".join(summarise_verdicts(found, shown)),
    )
    head = ["keyword", "drafts", "describe_enforcement", *shown.values(), "schema"]
    index = 0
    for section, group in groupby(probes, key=lambda probe: probe.section):
        text += f"\n## {section}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}\n"
        for probe in group:
            text += format_row(probe, {name: found[name][index].word for name in shown}, list(shown)) + "\n"
            index += 1
    return text


TITLES = {name: name for name in ENGINES} | {"constrain-any": "constrain", "constrain": "default style"}


def is_used(word: str, found: Mapping[str, Sequence[Verdict]]) -> bool:
    """Return whether a verdict occurs."""
    return any(word in verdict.word.split(", ") for verdicts in found.values() for verdict in verdicts)


def summarise_verdicts(found: Mapping[str, Sequence[Verdict]], shown: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a table that counts verdicts by engine; a verdict of two words counts in both lines."""
    total = len(next(iter(found.values())))
    yield f"| of {total} rows | {' | '.join(shown.values())} |"
    yield f"|---|{'---:|' * len(shown)}"
    for word in VERDICTS:
        if is_used(word, found):
            counts = (Counter(w for v in found[name] for w in v.word.split(", "))[word] for name in shown)
            yield f"| {word} | {' | '.join(map(str, counts))} |"
