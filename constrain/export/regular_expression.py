"""Convert a Dfa to a regular expression by state elimination (Brzozowski and McCluskey 1963).

In an engine that tries alternatives in order, the first match of the result is the longest: transitions come before
acceptance, and in a deterministic automaton at most one transition fits the next character.
"""

from __future__ import annotations

from ..automata.dfa import LAST, SURROGATES, Dfa
from ..base.work import spend_work
from ..frontends.regex.charset import CharSet, contains_point, unite_charsets
from ..frontends.regex.regex_tree import EMPTY, Alternation, Concatenation, OneOf, Repetition, Term, subterms

__all__ = ["MOST_TERMS", "find_charsets", "to_expression"]

MOST_TERMS = 4_000
"""Most terms of an expression: in the worst case it is exponentially larger than its Dfa."""


def find_charsets(dfa: Dfa) -> list[dict[int, CharSet]]:
    """Return for each state a dict from next state to the CharSet that leads there.

    Sets that contain both neighbours of the surrogate range are extended by the surrogates, which keeps them short.
    """
    table = dfa.table
    spans: dict[int, list[CharSet]] = {}
    for k, bound in enumerate(table.bounds):
        end = table.bounds[k + 1] if k + 1 < len(table.bounds) else LAST
        spans.setdefault(table.classes[k], []).append((bound, end))
    sets = {index: unite_charsets(parts) for index, parts in spans.items()}
    out: list[dict[int, CharSet]] = []
    for row in table.rows:
        targets: dict[int, list[CharSet]] = {}
        for index, target in enumerate(row):
            if target >= 0:
                targets.setdefault(target, []).append(sets[index])
        out.append({target: _add_surrogates(unite_charsets(parts)) for target, parts in targets.items()})
    return out


def _add_surrogates(charset: CharSet) -> CharSet:
    if contains_point(charset, SURROGATES[0] - 1) and contains_point(charset, SURROGATES[1]):
        return unite_charsets((charset, SURROGATES))
    return charset


def to_expression(dfa: Dfa) -> Term | None:
    """Return a regular expression of a non-empty Dfa, or None if it has more than `MOST_TERMS` terms."""
    edges: list[dict[int, Term]] = [{t: OneOf(chars) for t, chars in row.items()} for row in find_charsets(dfa)]
    ends: list[Term | None] = [EMPTY if accepts else None for accepts in dfa.table.accepting]
    size = len(edges)
    into: list[set[int]] = [{p for p in range(size) if q in edges[p]} for q in range(size)]
    remaining, sizes = set(range(1, size)), _TermSizes()
    while remaining:
        state = min(remaining, key=lambda q: (len(into[q] - {q}) * len(edges[q].keys() - {q}), q))
        remaining.discard(state)
        loop = edges[state].pop(state, None)
        again = EMPTY if loop is None else _repeat_any(loop)
        for before in into[state] - {state}:
            first = _concatenate(edges[before].pop(state), again)
            for after, term in edges[state].items():
                edges[before][after] = _unite(_concatenate(first, term), edges[before].get(after))
                into[after].add(before)
            end = ends[state]
            if end is not None:
                ends[before] = _unite(_concatenate(first, end), ends[before])
            total = max(sum(map(sizes.of, edges[before].values())), sizes.of(ends[before] or EMPTY))
            spend_work(len(edges[before]) + total // 64, "the expression of an automaton")
            if total > MOST_TERMS:
                return None
        for after in edges[state]:
            into[after].discard(state)
    loop, end = edges[0].get(0), ends[0]
    assert end is not None, "not empty"
    expression = end if loop is None else _concatenate(_repeat_any(loop), end)
    return expression if sizes.of(expression) <= MOST_TERMS else None


class _TermSizes:
    """Cache of the sizes of terms. Terms share subterms, so their size may be exponential in their memory."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Term, int]] = {}  # Keyed by id; holding the term keeps its id unique.

    def of(self, term: Term) -> int:
        """Return the number of terms in a term, itself included; shared subterms count once per occurrence."""
        known, work = self._known, [term]
        while work:
            current = work[-1]
            unknown = [part for part in subterms(current) if id(part) not in known]
            if unknown:
                work += unknown
            else:
                known[id(current)] = current, 1 + sum(known[id(part)][1] for part in subterms(current))
                work.pop()
        return known[id(term)][1]


def _repeat_any(term: Term) -> Term:
    return Repetition(term, 0, None)


def _concatenate(first: Term, second: Term) -> Term:
    parts: list[Term] = []
    for term in (first, second):
        parts += term.parts if isinstance(term, Concatenation) else (term,)
    for k in range(len(parts) - 1):
        following = parts[k + 1]
        if isinstance(following, Repetition) and following == Repetition(parts[k], 0, None):
            parts[k : k + 2] = [Repetition(parts[k], 1, None)]
            break
    return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))


def _unite(first: Term, second: Term | None) -> Term:
    """Return the alternation of a continuation and acceptance, in this order, simplified."""
    if second is None or second == first:
        return first
    if isinstance(first, OneOf) and isinstance(second, OneOf):
        return OneOf(unite_charsets((first.charset, second.charset)))
    if second == EMPTY:
        return Repetition(first, 0, 1)
    if first == EMPTY:
        return Repetition(second, 0, 1)
    if isinstance(second, Repetition) and (second.low, second.high) == (0, 1):
        return Repetition(_unite(first, second.term), 0, 1)
    options = [first]
    options += second.options if isinstance(second, Alternation) else (second,)
    return Alternation(tuple(options))
