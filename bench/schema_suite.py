"""Is every test of the official JSON Schema test suite judged as it says?

    python -m bench schema_suite ../shared/data/json-schema-test-suite.tar.gz [--draft 2020-12] [--file format/]

Each schema is compiled with `Style.any()` over a vocabulary of bytes, and each instance is spelled in several ways
(compact, spaced, keys in another order, escapes). A test passes if the Matcher accepts every spelling exactly when the
suite calls the instance valid. Drafts 4 to 2020-12. `format` is an annotation in the required tests, and an assertion
in the optional ones of `format/`. Optional files that contradict the specification are listed in EXCLUDED and not run.
"""

from __future__ import annotations

import json
import random
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

import constrain
from constrain import Limits, Style, Vocabulary
from constrain.base.errors import ConstrainError, TokenRefused, UnsatisfiableError
from constrain.base.json_documents import parse_json

from .options import DATA, build_parser
from .tables import build_table, print_table

__all__ = [
    "EXCLUDED",
    "DRAFTS",
    "Group",
    "Suite",
    "Verdict",
    "judge_group",
    "judge_all",
    "load_suite",
    "spell_variants",
]

DRAFTS = {
    "draft4": "http://json-schema.org/draft-04/schema#",
    "draft6": "http://json-schema.org/draft-06/schema#",
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}
"""Folder of the suite -> the dialect of a schema in it that names none."""

REMOTES = "http://localhost:1234/"
"""The address of the files in `remotes/`, from the README of the suite."""

EXCLUDED = {
    "optional/content.json": "asks that content keywords are asserted, which the specification advises against",
    "optional/dependencies-compatibility.json": "asks for a keyword that these drafts no longer have",
}
"""Optional files that are not run, and why."""


class Literal(str):
    """A number by its text."""


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """One schema of the suite with its tests: (description, instance, valid). file: below the folder of the draft."""

    draft: str
    file: str
    description: str
    schema: Any
    tests: tuple[tuple[str, Any, bool], ...]

    @property
    def optional(self) -> bool:
        """Return whether an implementation may fail it."""
        return self.file.startswith("optional/")

    @property
    def style(self) -> Style:
        """Return the style in which it is judged."""
        return replace(Style.any(), formats="assert" if self.file.startswith("optional/format/") else "annotate")


class Suite(NamedTuple):
    """The groups in order, and for each draft the documents that `$ref` may refer to."""

    groups: list[Group]
    registry: dict[str, dict[str, Any]]


class Verdict(NamedTuple):
    """The outcome of one test: "passed", "refused" (why: the error) or "wrong" (why: the spelling)."""

    group: Group
    test: str
    outcome: str
    why: str = ""


def load_suite(path: Path) -> Suite:
    """Return the suite in an archive. OSError, tarfile.TarError or ValueError if it is none."""
    with tarfile.open(path) as archive:
        texts = {
            member.name.removeprefix("./"): archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive
            if member.isfile() and member.name.endswith(".json")
        }
    # All members of an archive of a repository are in one folder.
    texts = {name[max(name.find("tests/"), 0) if "remotes/" not in name else name.find("remotes/") :]: text
             for name, text in texts.items()}  # fmt: skip
    groups = [
        group
        for draft in DRAFTS
        for name in sorted(texts)
        if name.startswith(f"tests/{draft}/")
        for group in read_members(draft, name.removeprefix(f"tests/{draft}/"), texts[name])
    ]
    if not groups:
        raise ValueError(f"{path} has no tests/draft2020-12/*.json: not the JSON Schema test suite")
    registry = {draft: dict(collect_remotes(draft, texts)) for draft in DRAFTS}
    return Suite(groups, registry)


def read_members(draft: str, file: str, text: str) -> Iterator[Group]:
    """Yield the groups of one file."""
    schemas = parse_json(text)
    instances = json.loads(text, parse_int=Literal, parse_float=Literal)
    for group, plain in zip(schemas, instances):
        schema = group["schema"]
        if isinstance(schema, dict) and "$schema" not in schema:
            schema = {"$schema": DRAFTS[draft], **schema}
        tests = tuple((test["description"], test["data"], test["valid"]) for test in plain["tests"])
        yield Group(draft, file, group["description"], schema, tests)


def collect_remotes(draft: str, texts: dict[str, str]) -> Iterator[tuple[str, Any]]:
    """Yield the documents that tests of a draft may refer to; those outside the folders of drafts are
    for all drafts.
    """
    for name, text in texts.items():
        if name.startswith("remotes/"):
            place = name.removeprefix("remotes/")
            folder = place.split("/")[0]
            schema = parse_json(text)
            known = DRAFTS.get(folder, DRAFTS[draft])
            if folder in DRAFTS or not folder.startswith(("draft", "v")):
                if isinstance(schema, dict) and "$schema" not in schema:
                    schema = {"$schema": known, **schema}
                yield REMOTES + place, schema


# ---- spelling ----------------------------------------------------------------------------------------------------


def spell_variants(value: Any, seed: str) -> list[bytes]:
    """Return JSON texts of an instance: compact, spaced, and two with shuffled keys and random escapes."""
    compact = write_json(value, None, "", "")
    spaced = write_json(value, None, " ", "\n\t ")
    rng = random.Random(seed)
    return list(dict.fromkeys((compact, spaced, write_json(value, rng, "", " "), write_json(value, rng, "\r", ""))))


def write_json(value: Any, rng: random.Random | None, before: str, after: str) -> bytes:
    """Return a JSON text with white space before and after each mark; with rng, keys in another order and escapes."""

    def text(item: Any) -> str:
        if isinstance(item, Literal):
            return item
        if isinstance(item, str):
            return quote_string(item, rng)
        if isinstance(item, list):
            return mark("[") + mark(",").join(map(text, item)) + mark("]")
        if isinstance(item, dict):
            members = [quote_string(key, rng) + mark(":") + text(value) for key, value in item.items()]
            if rng is not None:
                rng.shuffle(members)
            return mark("{") + mark(",").join(members) + mark("}")
        return json.dumps(item)

    def mark(char: str) -> str:
        return before + char + after

    return (before + text(value) + after).encode()


def quote_string(value: str, rng: random.Random | None) -> str:
    """Return a string; with rng about a third of its characters escaped."""
    if rng is None:
        return json.dumps(value, ensure_ascii=False)
    return '"' + "".join([escape_character(char, rng) for char in value]) + '"'


def escape_character(char: str, rng: random.Random) -> str:
    """Return a character, or an escape of it at random."""
    if rng.random() < 0.3:
        units = char.encode("utf-16-be")
        codes = [f"\\u{units[i] << 8 | units[i + 1]:04x}" for i in range(0, len(units), 2)]
        return "".join(code.upper().replace("U", "u") if rng.random() < 0.5 else code for code in codes)
    return "\\/" if char == "/" and rng.random() < 0.5 else json.dumps(char, ensure_ascii=False)[1:-1]


# ---- judging -----------------------------------------------------------------------------------------------------


def judge_all(suite: Suite, groups: Iterable[Group] | None = None) -> list[Verdict]:
    """Return the verdict on each test of these groups (default: all), in order, without the files in EXCLUDED."""
    vocabulary = Vocabulary.bytes()
    chosen = [group for group in (suite.groups if groups is None else groups) if group.file not in EXCLUDED]
    return [verdict for group in chosen for verdict in judge_group(group, suite.registry[group.draft], vocabulary)]


def judge_group(group: Group, registry: dict[str, Any], vocabulary: Vocabulary) -> Iterator[Verdict]:
    """Yield the verdict on each test of a group."""
    try:
        constraint = constrain.compile(
            vocabulary,
            schema=group.schema,
            style=group.style,
            registry=registry,
            limits=Limits(state_cache_bytes=32 << 20),
        )
    except UnsatisfiableError:  # Right if nothing at all is valid.
        constraint = None
    except ConstrainError as error:
        for description, _, _ in group.tests:
            yield Verdict(group, description, "refused", error.cause)
        return
    matcher = None if constraint is None else constraint.matcher()
    for description, instance, valid in group.tests:
        seed = "\n".join((group.draft, group.file, group.description, description))
        why = ""
        for text in spell_variants(instance, seed):
            taken = False
            if matcher is not None:
                try:
                    matcher.advance_bytes(text)
                except TokenRefused:
                    pass
                else:
                    taken = matcher.is_complete
                    matcher.rollback()
            if taken != valid:
                why = f"{'valid, but refused' if valid else 'invalid, but taken'}: {text.decode()[:80]}"
                break
        yield Verdict(group, description, "wrong" if why else "passed", why)


# ---- the command -------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite. Return the exit code: 0 if all tests pass, 1 if not, 2 for wrong arguments."""
    from . import suite_ratchet

    parser = build_parser("schema_suite", __doc__)
    names = [draft.removeprefix("draft") for draft in DRAFTS]
    parser.add_argument("suite", type=Path, nargs="?", default=DATA / "json-schema-test-suite.tar.gz", help="the suite")
    parser.add_argument("--draft", nargs="+", choices=names, default=names, help="only these drafts")
    parser.add_argument("--file", default="", metavar="TEXT", help="only files with this in their name")
    parser.add_argument("--renew", type=Path, metavar="PATH", help="write the list of known failures to this file")
    parser.add_argument("--list", "--list-wrong", action="store_true", help="every test that did not pass")
    options = parser.parse_args(arguments)
    console = Console()
    try:
        suite = load_suite(options.suite)
    except (OSError, tarfile.TarError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    groups = [
        group
        for group in suite.groups
        if group.draft.removeprefix("draft") in options.draft and options.file in group.file
    ]
    verdicts = judge_all(suite, groups)
    failed = [verdict for verdict in verdicts if verdict.outcome != "passed"]
    print_table(build_counts(verdicts), console)
    print_refusals(failed, console)
    aside = sorted({group.file for group in groups if group.file in EXCLUDED})
    for file in aside:
        console.print(f"not run: {file} {EXCLUDED[file]}", highlight=False, markup=False, soft_wrap=True)
    if options.list:
        for verdict in failed:
            group = verdict.group
            line = (
                f"{verdict.outcome}: {group.draft} {group.file} | {group.description} | {verdict.test} | {verdict.why}"
            )
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    if options.renew:
        known = suite_ratchet.read_ratchet(options.renew) if options.renew.exists() else []
        options.renew.write_text(suite_ratchet.renew_ratchet(known, verdicts), "utf-8")
    return 1 if failed else 0


def build_counts(verdicts: list[Verdict]) -> Table:
    """Return a table of counts per draft."""
    out = build_table("JSON Schema test suite", ("draft", "part"), ("tests", "passed", "refused", "wrong"))
    for draft in DRAFTS:
        for part in ("required", "optional formats", "optional, other"):
            counts = Counter(v.outcome for v in verdicts if v.group.draft == draft and part == name_part(v.group))
            if counts:
                cells = [f"{counts[outcome]:,}" for outcome in ("passed", "refused", "wrong")]
                out.add_row(draft.removeprefix("draft"), part, f"{counts.total():,}", *cells)
    return out


def name_part(group: Group) -> str:
    """Return the row that a group is counted in."""
    if not group.optional:
        return "required"
    return "optional formats" if group.file.startswith("optional/format/") else "optional, other"


def print_refusals(failed: list[Verdict], console: Console) -> None:
    """Print the reasons of refusals, most frequent first."""
    reasons = Counter(v.why.splitlines()[0] for v in failed if v.outcome == "refused")
    for reason, count in reasons.most_common():
        console.print(f"refused {count:5,}: {reason}", highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
