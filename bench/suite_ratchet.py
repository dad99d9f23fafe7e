"""Compare a run of the JSON Schema test suite with the list of known failures, to which none may be added.

An entry names drafts, a file, a group and the tests in it (or "all"), and gives a reason. `compare_verdicts` returns
new failures and tests that no longer fail; `renew_ratchet` writes the list of a run and retains the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from .schema_suite import Group, Verdict

__all__ = ["Known", "compare_verdicts", "read_ratchet", "renew_ratchet"]

Place = tuple[str, str, str, str]
"""Draft, file, description of the group, description of the test."""


class Known(NamedTuple):
    """A group with known failures."""

    drafts: tuple[str, ...]
    file: str
    group: str
    tests: tuple[str, ...] | None
    """None for all of them."""
    reason: str


def read_ratchet(path: Path) -> list[Known]:
    """Return the list in a file. OSError, or ValueError if it is not one."""
    return [
        Known(tuple(row["drafts"]), row["file"], row["group"], None if row["tests"] == "all" else tuple(row["tests"]),
              row["reason"])
        for row in json.loads(path.read_text("utf-8"))
    ]  # fmt: skip


def compare_verdicts(known: Iterable[Known], verdicts: Iterable[Verdict]) -> tuple[list[str], list[str]]:
    """Return the failures that are not listed, and the listed tests that pass or no longer exist."""
    listed: set[Place] = set()
    whole_groups: set[Place] = set()
    for entry in known:
        for draft in entry.drafts:
            if entry.tests is None:
                whole_groups.add((draft, entry.file, entry.group, ""))
            listed.update((draft, entry.file, entry.group, test) for test in entry.tests or ())
    worse, matched = [], set()
    for verdict in verdicts:
        key = _place(verdict)
        if verdict.outcome == "passed":
            continue
        found = key if key in listed else (*key[:3], "")
        if found in listed or found in whole_groups:
            matched.add(found)
        else:
            worse.append(f"{' | '.join(key)}: {verdict.outcome}, {verdict.why}")
    return worse, sorted(" | ".join(key) for key in (listed | whole_groups) - matched)


def renew_ratchet(known: Iterable[Known], verdicts: Iterable[Verdict]) -> str:
    """Return the list of a run as JSON text. The reason of a refusal is its message; a wrong verdict
    retains its reason.
    """
    reasons = {(entry.file, entry.group): entry.reason for entry in known}
    entries: dict[tuple[Any, ...], list[str]] = {}
    for group, failed in _by_group(verdicts).items():
        tests = "all" if len(failed) == len(group.tests) else tuple(verdict.test for verdict in failed)
        refused = next((verdict.why for verdict in failed if verdict.outcome == "refused"), "")
        reason = refused or reasons.get((group.file, group.description), "")
        entries.setdefault((group.file, group.description, tests, reason), []).append(group.draft)
    rows = [
        {"file": file, "group": group, "tests": tests, "reason": reason, "drafts": drafts}
        for (file, group, tests, reason), drafts in entries.items()
    ]
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"


def _by_group(verdicts: Iterable[Verdict]) -> dict[Group, list[Verdict]]:
    """Return the failed tests of each group that has some."""
    out: dict[int, tuple[Group, list[Verdict]]] = {}
    for verdict in verdicts:
        if verdict.outcome != "passed":
            out.setdefault(id(verdict.group), (verdict.group, []))[1].append(verdict)
    return dict(out.values())


def _place(verdict: Verdict) -> Place:
    group = verdict.group
    return group.draft, group.file, group.description, verdict.test
