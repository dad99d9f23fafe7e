"""Run the official JSON Schema test suite through the reference validator: `python -m fuzz.reference SUITE.tar.gz`."""

from __future__ import annotations

import argparse
import json
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .json_text import parse
from .validator import DIALECTS, Undecided, Validator

DRAFTS = dict(zip(("draft4", "draft6", "draft7", "draft2019-09", "draft2020-12"), DIALECTS))
REMOTES = "http://localhost:1234/"
EXCLUDED = {
    "vocabulary.json": "asks that a custom metaschema switches keywords off, which the reference does not read",
}
"""Required files that are excluded, and why."""


def find_differences(path: Path) -> tuple[Counter[str], list[str]]:
    """Run all required tests. Return counts of "agree", "differ" and "undecided", and a line for each
    other than "agree".
    """
    counts: Counter[str] = Counter()
    lines = []
    for draft, name, schema, test, registry in load_cases(path):
        verdict = judge_test(schema, test["data"], DRAFTS[draft], registry)
        outcome = "agree" if verdict == test["valid"] else "undecided" if isinstance(verdict, str) else "differ"
        counts[outcome] += 1
        if outcome != "agree":
            lines.append(f"{outcome}: {draft}/{name}: {test['description']}: {verdict}")
    return counts, lines


def judge_test(schema: Any, value: Any, dialect: str, registry: dict[str, Any]) -> bool | str:
    """Return the verdict, or the reason why it is undecided."""
    try:
        return Validator(schema, dialect, registry).is_valid(value)
    except Undecided as error:
        return str(error)


def load_cases(path: Path) -> Iterator[tuple[str, str, Any, Any, dict[str, Any]]]:
    """Yield (draft, file, schema, test, registry) of every required test."""
    with tarfile.open(path) as archive:
        texts = {
            member.name.removeprefix("./"): archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive
            if member.isfile() and member.name.endswith(".json")
        }
    remotes = {
        REMOTES + name.partition("remotes/")[2]: parse(text)
        for name, text in texts.items()
        if name.startswith("remotes/")
    }
    for name, text in sorted(texts.items()):
        _, _, rest = name.partition("tests/")
        draft, _, file = rest.partition("/")
        if draft in DRAFTS and "/" not in file and file not in EXCLUDED:
            for group in parse(text):
                for test in group["tests"]:
                    yield draft, file, group["schema"], test, remotes


def main() -> int:
    """Print the counts. Return the exit code: 1 if a test differs."""
    options = argparse.ArgumentParser(prog="python -m fuzz.reference", description=__doc__)
    options.add_argument("suite", type=Path)
    counts, lines = find_differences(options.parse_args().suite)
    print("\n".join(lines))
    print(json.dumps(counts))
    return 1 if counts["differ"] else 0


if __name__ == "__main__":
    sys.exit(main())
