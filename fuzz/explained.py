"""Rules that explain known disagreements with other implementations, each with its reason.

A rule decides from the schema, the instance and the two verdicts whether it applies. A disagreement without a rule is a
finding. A rule that explained nothing in a run of `make fuzz` is named in the log, so that it can be deleted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["EXPLAINED", "RULES", "Case", "Rule", "find_explanation"]


@dataclass(frozen=True)
class Case:
    """Our verdict and that of another implementation. exact: whether that one computes with exact numbers."""

    schema: str
    instance: str
    ours: bool
    theirs: bool
    exact: bool = True


@dataclass(frozen=True)
class Rule:
    """reason: why the verdicts may differ. applies: function that decides whether this is such a case."""

    reason: str
    applies: Callable[[Case], bool]


EXPONENT = re.compile(r"[0-9][eE]")
BEYOND_DOUBLES = re.compile(r"[eE][-+]?[0-9]{3,}|[0-9]{300,}")
SURROGATE = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")

RULES: dict[str, Rule] = {
    "exponent under multipleOf": Rule(
        "Numbers written with an exponent are narrowed under multipleOf: the number automata of 0.1 do not hold all of "
        "them (faults.md 1.6, the speed issue). Only texts that we refuse.",
        lambda case: (
            not case.ours and case.theirs and '"multipleOf"' in case.schema and bool(EXPONENT.search(case.instance))
        ),
    ),
    "beyond doubles": Rule(
        "jsonschema-rs reads numbers as doubles; the reference does not write numbers of more than 20,000 digits, so "
        "nobody contradicts it.",
        lambda case: not case.exact and bool(BEYOND_DOUBLES.search(case.instance)),
    ),
    "lone surrogate": Rule(
        "A JSON text may escape half of a surrogate pair; such a string is not Unicode text, and masks never write it.",
        lambda case: not case.ours and bool(SURROGATE.search(case.instance)),
    ),
}
EXPLAINED: Counter[str] = Counter()
"""Number of disagreements that each rule explained in this process."""


def find_explanation(case: Case) -> str | None:
    """Return the name of the rule that explains a disagreement, or None."""
    for name, rule in RULES.items():
        if rule.applies(case):
            EXPLAINED[name] += 1
            return name
    return None
