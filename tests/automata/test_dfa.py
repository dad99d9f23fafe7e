"""Dfa against brute force over all short texts of a small alphabet, and the promises of its canonical form."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from constrain.automata import text_lengths
from constrain.automata.dfa import LAST, Dfa, Table
from constrain.base.errors import LimitError
from constrain.base.work import work_budget
from tests.grammar_strategies import ALPHABET, dfas, tables, words_up_to

WORDS = words_up_to(4)
SHORT = words_up_to(3)
bounds = st.integers(0, 4)
upper = st.none() | st.integers(0, 4)


def run(table: Table, text: str) -> bool:
    """The answer of a table that nothing has been done to."""
    if not table.rows:
        return False
    state = 0
    for char in text:
        index = max(i for i, bound in enumerate(table.bounds) if bound <= ord(char))
        state = table.rows[state][table.classes[index]]
        if state < 0:
            return False
    return bool(table.accepting[state])


def language(dfa: Dfa, words: list[str] = WORDS) -> set[str]:
    return {word for word in words if dfa.accepts(word)}


# ---- the canonical form -----------------------------------------------------------------------------------------


@given(tables())
def test_from_table_preserves_the_language(table: Table) -> None:
    dfa = Dfa.from_table(table)
    assert language(dfa) == {word for word in WORDS if run(table, word)}


@given(tables(), st.randoms(use_true_random=False))
def test_numbering_and_redundancy_do_not_matter(table: Table, rng: random.Random) -> None:
    """States renamed (but for the start) and doubled, classes split and renamed: the same arrays come out."""
    size = len(table.rows)
    copies = [rng.sample(range(2 * size), 2 * size)][0]
    if size:
        start = copies.index(0)
        copies[0], copies[start] = copies[start], copies[0]
    # State s becomes copies[s] or copies[s + size], at random at each edge.
    columns = [*range(6), *range(6)]
    rng.shuffle(columns)
    rows: list[list[int]] = [[] for _ in range(2 * size)]
    accepting = [False] * (2 * size)
    for state in range(2 * size):
        row = table.rows[state % size]
        rows[copies[state]] = [copies[row[c] + rng.choice((0, size))] if row[c] >= 0 else -1 for c in columns]
        accepting[copies[state]] = table.accepting[state % size]
    choices = [[i for i, column in enumerate(columns) if column == c] for c in range(6)]
    spans = sorted({*table.bounds, 0x70, 0x1000, 0x20000})
    old = [table.classes[max(i for i, b in enumerate(table.bounds) if b <= point)] for point in spans]
    other = Table(spans, [rng.choice(choices[c]) for c in old], rows, accepting)
    first, second = Dfa.from_table(table), Dfa.from_table(other)
    assert first == second and first.key == second.key and hash(first) == hash(second)
    assert np.array_equal(first.delta, second.delta) and np.array_equal(first.bounds, second.bounds)


@given(dfas())
def test_the_canonical_form(dfa: Dfa) -> None:
    states, classes = dfa.delta.shape
    assert dfa.bounds.dtype == dfa.classes.dtype == dfa.delta.dtype == np.int32 and dfa.accepting.dtype == np.bool_
    assert dfa.bounds[0] == 0 and (np.diff(dfa.bounds) > 0).all() and dfa.bounds[-1] < LAST
    assert (np.diff(dfa.classes) != 0).all()
    assert list(dict.fromkeys(dfa.classes.tolist())) == list(range(classes)), "numbered by first code point"
    assert len({tuple(column) for column in dfa.delta.T}) == classes or states == 0
    assert not any(array.flags.writeable for array in (dfa.bounds, dfa.classes, dfa.delta, dfa.accepting))
    seen = [0] if states else []
    for state in seen:
        seen += [t for t in dict.fromkeys(dfa.delta[state].tolist()) if t >= 0 and t not in seen]
    assert seen == list(range(states)), "numbered breadth-first"
    assert (dfa.distances() >= 0).all(), "every state leads to acceptance"
    surrogate = dfa.classes[np.searchsorted(dfa.bounds, 0xD800, "right") - 1]
    assert (dfa.delta[:, surrogate] == -1).all()
    assert Dfa.from_table(dfa.table) == dfa


@given(dfas())
def test_no_two_states_are_equal(dfa: Dfa) -> None:
    """Minimal: the languages of the states are different."""
    for state in range(len(dfa.accepting)):
        others = [Dfa.from_table(swapped(dfa.table, other)) for other in range(len(dfa.accepting)) if other != state]
        assert Dfa.from_table(swapped(dfa.table, state)) not in others


def swapped(table: Table, start: int) -> Table:
    """The same automaton with another start."""
    name = {0: start, start: 0}
    rows = [[name.get(t, t) for t in table.rows[name.get(s, s)]] for s in range(len(table.rows))]
    return Table(table.bounds, table.classes, rows, [table.accepting[name.get(s, s)] for s in range(len(rows))])


# ---- algebra ----------------------------------------------------------------------------------------------------


@given(dfas(), dfas())
def test_boolean_operations(a: Dfa, b: Dfa) -> None:
    assert language(a.union(b)) == language(a) | language(b)
    assert language(a.intersect(b)) == language(a) & language(b)
    assert language(a.subtract(b)) == language(a) - language(b)
    assert language(a.complement()) == set(WORDS) - language(a)


@given(dfas(), dfas(), dfas())
def test_boolean_identities_hold_as_equality(a: Dfa, b: Dfa, c: Dfa) -> None:
    assert a.complement().complement() == a
    assert a.union(b).complement() == a.complement().intersect(b.complement())
    assert a.intersect(b).complement() == a.complement().union(b.complement())
    assert a.subtract(b) == a.intersect(b.complement())
    assert a.intersect(b.union(c)) == a.intersect(b).union(a.intersect(c))
    assert a.union(a.complement()) == Dfa.any_text() and a.intersect(a.complement()) == Dfa.empty()
    assert Dfa.union_of([a, b, c]) == a.union(b).union(c)
    assert (a.is_empty, a.is_universal) == (a == Dfa.empty(), a == Dfa.any_text())


@given(dfas(4), dfas(4))
def test_concatenation(a: Dfa, b: Dfa) -> None:
    expected = {w for w in SHORT if any(a.accepts(w[:i]) and b.accepts(w[i:]) for i in range(len(w) + 1))}
    assert language(a.concatenate(b), SHORT) == expected


def splits(dfa: Dfa, word: str, low: int, high: int | None) -> bool:
    """Whether the word is low to high texts of the language in a row."""
    counts: list[set[int]] = [set() for _ in range(len(word) + 1)]
    most = low + len(word) + 1 if high is None else high
    counts[0] = set(range(most + 1)) if dfa.accepts("") else {0}
    for end in range(1, len(word) + 1):
        for start in range(end):
            if dfa.accepts(word[start:end]):
                counts[end] |= {n + 1 for n in counts[start] if n < most}
        if dfa.accepts("") and counts[end]:
            counts[end] = set(range(min(counts[end]), most + 1))
    return any(low <= n <= most for n in counts[-1])


@given(dfas(4), bounds, upper)
def test_repetition(dfa: Dfa, low: int, high: int | None) -> None:
    assert language(dfa.repeat(low, high), SHORT) == {w for w in SHORT if splits(dfa, w, low, high)}


@given(dfas(), bounds, upper)
def test_with_length(dfa: Dfa, low: int, high: int | None) -> None:
    counted = dfa.with_length(low, high)
    assert language(counted) == {w for w in language(dfa) if low <= len(w) and (high is None or len(w) <= high)}
    assert counted == dfa.intersect(any_char().repeat(low, high))


def any_char() -> Dfa:
    return Dfa.from_ranges([(0, LAST - 1)])


@given(st.lists(st.text(ALPHABET, max_size=5), max_size=8))
def test_from_strings(words: list[str]) -> None:
    dfa = Dfa.from_strings(words)
    assert dfa.enumerate(100) == sorted(set(words), key=lambda w: (len(w), w))
    assert dfa == Dfa.union_of([Dfa.from_strings([word]) for word in words]) == Dfa.from_table(dfa.table)


@given(dfa=dfas(), most=st.integers(0, 12))
def test_list_texts(dfa: Dfa, most: int) -> None:
    """All texts are listed if they are few, with the work of enumerating them."""
    expected = dfa.enumerate(most + 1)
    spent = []
    for method in (dfa.list_texts, dfa.enumerate):
        with work_budget(1 << 30) as budget:
            found = method(most)
            spent.append(budget.spent)
    if len(expected) > most:
        assert dfa.list_texts(most) is None
    else:
        assert dfa.list_texts(most) == expected == found
        assert spent[0] == spent[1]


@given(st.lists(st.tuples(st.integers(0, LAST - 1), st.integers(0, 3000)), max_size=5))
def test_from_ranges(pairs: list[tuple[int, int]]) -> None:
    ranges = [(low, min(low + size, LAST - 1)) for low, size in pairs]
    dfa = Dfa.from_ranges(ranges)
    edges = {p + d for r in ranges for p in r for d in (-1, 0, 1)} | {0xD7FF, 0xE000, 0, LAST - 1}
    for point in edges:
        if not 0 <= point < LAST or 0xD800 <= point < 0xE000:
            continue
        assert dfa.accepts(chr(point)) == any(low <= point <= high for low, high in ranges)
    assert not dfa.accepts("") and not dfa.accepts("\ud800") and not dfa.accepts("\udfff")
    assert Dfa.from_table(dfa.table) == dfa


# ---- questions --------------------------------------------------------------------------------------------------


def lengths_from(dfa: Dfa, most: int) -> list[set[int]]:
    """For each state the numbers of characters, up to `most`, after which it may accept."""
    found = [{0} if accepts else set() for accepts in dfa.table.accepting]
    for _ in range(most):
        found = [
            found[state] | {d + 1 for t in row if t >= 0 for d in found[t] if d < most}
            for state, row in enumerate(dfa.table.rows)
        ]
    return found


@given(dfas())
def test_lengths_distances_extensible(dfa: Dfa) -> None:
    most = 20  # More than three times the states: a gap or an end shows by then.
    found = lengths_from(dfa, most)
    assert dfa.distances().tolist() == [min(lengths) for lengths in found]
    assert dfa.extensible() == all(d == most or d + 1 in lengths for lengths in found for d in lengths)
    least, longest = dfa.lengths()
    if dfa.is_empty:
        assert (least, longest) == (1, 0)
    else:
        assert least == min(found[0])
        assert longest == (None if max(found[0]) > 6 else max(found[0]))


@given(dfas(), st.integers(0, 40))
def test_counting_and_listing(dfa: Dfa, cap: int) -> None:
    few = dfa.with_length(0, 3).intersect(Dfa.from_ranges([(ord(c), ord(c)) for c in ALPHABET]).star())
    expected = sorted(language(few, SHORT), key=lambda w: (len(w), w))
    assert few.count(cap) == min(cap, len(expected)) and few.count(10**6) == len(expected)
    assert few.enumerate(cap) == expected[:cap]
    listed = dfa.enumerate(cap)
    assert listed == sorted(set(listed), key=lambda w: (len(w), w)) and all(map(dfa.accepts, listed))
    assert len(listed) == dfa.count(cap)
    if not dfa.is_empty:
        assert dfa.shortest() == dfa.enumerate(1)[0]


def test_counting_counts_characters_not_classes() -> None:
    assert any_char().count(10**9) == LAST - 2048
    assert any_char().repeat(0, 2).count(10**15) == 1 + (LAST - 2048) + (LAST - 2048) ** 2


@given(dfas(), st.text(ALPHABET, max_size=5))
def test_step_walks_as_accepts_does(dfa: Dfa, text: str) -> None:
    state = -1 if dfa.is_empty else 0
    for char in text:
        state = dfa.step(state, char)
    assert (state >= 0 and bool(dfa.accepting[state])) == dfa.accepts(text)


def test_the_empty_language() -> None:
    empty = Dfa.empty()
    assert empty.is_empty and empty.delta.shape == (0, 1) and empty.enumerate(5) == [] and empty.count(5) == 0
    assert empty.complement().is_universal and empty.star() == Dfa.from_strings([""]) == empty.repeat(0, 0)
    assert empty.repeat(1, None) == empty == Dfa.from_strings([]) == Dfa.from_ranges([])
    assert empty.extensible() and not empty.is_universal
    with pytest.raises(ValueError, match="no shortest text"):
        empty.shortest()


# ---- budgets and bad input --------------------------------------------------------------------------------------

A, B = Dfa.from_strings(["aaaaaaaa"]), Dfa.from_strings(["bbbbbbb", "b"])


@pytest.mark.parametrize(
    "build",
    [
        lambda limit: A.union(B, max_states=limit),
        lambda limit: A.concatenate(B, max_states=limit),
        lambda limit: A.star(max_states=limit),
        lambda limit: A.repeat(3, 1000, max_states=limit),
        lambda limit: A.repeat(10**9, None, max_states=limit),
        lambda limit: any_char().star().with_length(0, 100, max_states=limit),
        lambda limit: Dfa.from_strings(["abcdefghijk"], max_states=limit),
        lambda limit: Dfa.union_of([A, B], max_states=limit),
        lambda limit: Dfa.any_text().subtract(A, max_states=limit),
        lambda limit: A.intersect(Dfa.any_text(), max_states=limit),
    ],
)
def test_budgets_are_enforced_by_name(build: Callable[[int], Dfa]) -> None:
    with pytest.raises(LimitError, match="max_states"):
        build(5)


def test_invalid_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        Dfa.from_table(Table([0], [0], [(0,)], [True]))
    with pytest.raises(ValueError, match="surrogate"):
        Dfa.from_strings(["a\ud800"])
    with pytest.raises(ValueError, match="range"):
        Dfa.from_ranges([(5, 4)])
    with pytest.raises(ValueError, match="range"):
        Dfa.from_ranges([(0, LAST)])


def test_many_strings() -> None:
    rng = random.Random(5)
    words = ["".join(rng.choices("abcdefgh_", k=rng.randint(1, 12))) for _ in range(5000)]
    dfa = Dfa.from_strings(words)
    assert dfa.count(10**6) == len(set(words)) and all(map(dfa.accepts, words)) and not dfa.accepts("abcdefghi")


def test_a_counter_beyond_small_numbers() -> None:
    """Chains, where refinement by rounds would be quadratic."""
    chain = any_char().star().with_length(3000, 5000)
    assert len(chain.accepting) == 5001 and chain.lengths() == (3000, 5000)
    assert chain == any_char().repeat(3000, 5000)


@given(dfas(), st.integers(1, 6))
def test_endless_languages_are_counted_without_their_states(dfa: Dfa, cap: int) -> None:
    assert dfa.count(cap) == text_lengths.count_texts(dfa.table, cap)
