"""Languages of texts as formulas: the Dfa of a formula is what the formula says."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from constrain.automata.dfa import Dfa
from constrain.base.errors import UnsupportedError
from constrain.base.options import Limits
from constrain.frontends.json_schema.core.schema_sets import ANY, NEVER, intersect_sets, is_subset_of
from constrain.frontends.json_schema.strings.schema_patterns import read_pattern
from constrain.frontends.json_schema.strings.string_languages import ALL, Language, LanguageCache

PATTERNS = ["^a", "b$", "^(ab)*$", "^a{2}$", "", "c"]
atoms = st.one_of(
    st.tuples(st.booleans(), st.just("pattern"), st.sampled_from(PATTERNS)),
    st.tuples(st.booleans(), st.just("texts"), st.lists(st.text("ab", max_size=2), min_size=1, max_size=3).map(tuple)),
)
langs: st.SearchStrategy[Language] = st.frozensets(atoms, max_size=3)  # type: ignore[arg-type]


def languages() -> LanguageCache:
    return LanguageCache(Limits(), lambda schemas: Dfa.empty(), lambda cause, field: UnsupportedError(cause))


def holds(lang: Language, text: str) -> bool:
    return all(
        (bool(re.search(str(payload), text)) if kind == "pattern" else text in payload) == sign  # type: ignore[operator]
        for sign, kind, payload in lang
    )


@given(langs, st.text("abc", max_size=3))
def test_a_formula_means_its_dfa(lang: Language, text: str) -> None:
    made = languages()
    assert made.accepts(lang, text) == made.dfa(lang).accepts(text) == holds(lang, text)
    assert not made.fast_has_text(lang) or not made.dfa(lang).is_empty


@given(langs, st.sampled_from(PATTERNS), st.text("abc", max_size=3))
def test_split(lang: Language, pattern: str, text: str) -> None:
    made = languages()
    inside, outside = made.split(lang, pattern)
    assert (inside is not None and made.accepts(inside, text)) == (holds(lang, text) and bool(re.search(pattern, text)))
    assert (outside is not None and made.accepts(outside, text)) == (holds(lang, text) and not re.search(pattern, text))


def test_all_is_everything() -> None:
    assert languages().dfa(ALL).is_universal


def test_pattern_properties() -> None:
    assert read_pattern("^[a-z]{1,255}$").counted == (1, 255)
    assert read_pattern("[a-z]").counted is None
    assert read_pattern("^a(b|c)$").has_text and not read_pattern("^a[^\\s\\S]$").has_text
    assert read_pattern("^.$").most_states <= 64 < read_pattern("^(ab){20}$").most_states < 300
    assert read_pattern("^(ab){20}x*$").most_states > 1 << 40


def test_literal_sets() -> None:
    assert (
        intersect_sets((1,), (2,)) == (1, 2) and intersect_sets((1,), ANY) == (1,) and intersect_sets(ANY, ANY) == ANY
    )
    assert intersect_sets((1, 2), (-2,)) == NEVER and intersect_sets(NEVER, (1,)) == NEVER
    assert (
        is_subset_of((1, 2), (1,))
        and is_subset_of(NEVER, (3,))
        and is_subset_of((1,), ANY)
        and not is_subset_of(ANY, (1,))
    )
