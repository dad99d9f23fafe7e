"""Regular expressions that an automaton accepts: where the symbols of their grammar lead."""

from __future__ import annotations

import pytest

from constrain.automata.dfa import Dfa
from constrain.frontends.json_schema.strings.nested_regex_format import NestedTexts
from constrain.frontends.regex import to_dfa


@pytest.mark.parametrize("sign", [True, False])
@pytest.mark.parametrize("pattern", [r"\^\(.*\)\$", r"[a-z(]{2,5}\)?", r"(a\(b\)|é|\\\()*", r"(?:..)*", r"[^)]*x"])
def test_targets_are_those_of_the_product(pattern: str, sign: bool) -> None:
    nested = NestedTexts(sign, to_dfa(pattern), 10_000)
    leaves = {part for alternatives in nested.symbols.values() for parts in alternatives for part in parts}
    for leaf in leaves:
        if not isinstance(leaf, Dfa):
            continue
        for state in range(len(nested.dfa.table.rows)):
            table, pairs = nested._intersect_leaf(leaf, state)
            expected = {of_dfa for (_, of_dfa), accepts in zip(pairs, table.accepting) if accepts}
            assert nested.find_targets(leaf, state) == expected
