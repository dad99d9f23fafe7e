"""Are numbers in any spelling accepted exactly as exact fractions say?

    python -m bench number_texts --texts 10000000 [--seed 1] [--length 5]

Random sets of numbers (bounds, multiples, listed values) come from `tests/number_oracle.py`. All prefixes of RFC 8259
numbers up to a length, over a few digits, are tried. The acceptance of each text that the automaton allows is compared
with Fraction. For a share of the states a completion is computed, and judged by Fraction after each text that reaches
the state; so is a random suffix of some texts. A refused text must not be a number of the set, and no sampled member of
the set may begin with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from random import Random
from typing import NamedTuple

from constrain.automata.numerals.number_automaton import NumberAutomaton
from tests.number_oracle import ALPHABET, PREFIX, NumberOracle, descend, follow, random_oracle, random_suffix

from .options import build_parser
from .tables import print_rows

__all__ = ["NumberCounts", "check_set", "main"]

COMPLETED, SUFFIXES, SAMPLED = 0.2, 0.3, 0.05
"""Shares of the states whose completion is searched, of the texts that are continued by a suffix, and of the refusals
that are compared with members."""
SHOWN = 10
"""Maximum number of mismatches that are printed."""


class NumberCounts(NamedTuple):
    """Counts of one set: states of its automaton, texts judged, and those judged wrong."""

    states: int
    texts: int
    wrong: list[str]


def check_set(oracle: NumberOracle, length: int, random: Random) -> NumberCounts:
    """Compare the automaton of a set with its definition."""
    automaton, members = NumberAutomaton(oracle.language()), oracle.samples(random)
    judged, wrong = 0, list[str]()
    completions: dict[int, str] = {}
    todo: list[tuple[str, int]] = [] if automaton.is_empty else [("", 0)]
    while todo:
        text, state = todo.pop()
        texts = [(text, automaton.accepts(state))]
        if state in completions or random.random() < COMPLETED:
            texts.append((text + descend(automaton, state, completions), True))
        if random.random() < SUFFIXES:
            suffix = random_suffix(random, text)
            after = follow(automaton, suffix, state)
            texts.append((text + suffix, after is not None and automaton.accepts(after)))
        row = automaton.row(state) if len(text) < length else {}
        for char in ALPHABET if len(text) < length else "":
            longer = text + char
            if ord(char) in row:
                todo.append((longer, row[ord(char)]))
            elif PREFIX.fullmatch(longer):
                texts.append((longer, False))
                is_sampled = random.random() < SAMPLED and "e" not in longer
                if is_sampled and oracle.most_fraction is None and oracle.form != "integer":
                    wrong += [f"{longer} of {one}" for one in members if oracle.is_prefix(longer, one)]
        judged += len(texts)
        wrong += [one for one, accepted in texts if accepted != oracle.accepts(one)]
    return NumberCounts(len(automaton.states), judged, wrong)


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare until --texts texts were judged. Return the exit code: 1 if any was judged wrong."""
    parser = build_parser("number_texts", __doc__, "seed")
    parser.add_argument("--texts", type=int, default=10_000_000, metavar="N", help="least number of texts")
    parser.add_argument("--length", type=int, default=5, metavar="N", help="longest prefixes, before a completion")
    options = parser.parse_args(arguments)
    sets = states = texts = n_wrong = 0
    for number in count():
        random = Random(f"{options.seed} {number}")
        oracle = random_oracle(random)
        found = check_set(oracle, options.length, random)
        sets, states, texts = sets + bool(found.texts), states + found.states, texts + found.texts
        for text in found.wrong[: max(0, SHOWN - n_wrong)]:
            print(f"{text} is judged wrong: {oracle}")
        n_wrong += len(found.wrong)
        if texts >= options.texts:
            break
    print_rows("numbers in any spelling", [{"sets": sets, "states": states, "texts": texts, "wrong": n_wrong}], 0)
    return int(n_wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main())
