"""Left-linear grammars of many rules: the engine against the textbook's finite automaton.

All rules begin where the text begins, so one closure has as many calls as there are rules, and one stack node as many
callers: far more than in the small grammars of `test_mask_oracle`, and its lists and hash tables fill up and grow.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from hypothesis import given, settings, strategies as st

from constrain.compilation.constraint_compiler import compile_grammar
from constrain.grammar.nodes import Choice, Grammar, Literal, Node, Rule, Sequence
from constrain.vocabulary.vocabulary import Vocabulary
from tests.engine.test_mask_oracle import list_tokens

Item = tuple[int, bytes]
WORDS = [b"", b"a", b"b", b"ab", b"ba", b"aab", b"c"]
VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", b"c", b"ab", b"ba", b"aa", b"aab", b"aba", b"bab", b"abab", b"baab", b"cc", b"", None], (13,)
)


@dataclass(frozen=True)
class LeftLinear:
    """words[i]: what rule i may be. chains[i]: pairs (j, w): it may be rule j followed by w. Rule 0 is the start."""

    words: list[list[bytes]]
    chains: list[list[tuple[int, bytes]]]

    def grammar(self) -> Grammar:
        """As nodes."""
        rules: dict[str, Node] = {}
        for i, (words, chains) in enumerate(zip(self.words, self.chains, strict=True)):
            begun = [Sequence((Rule(f"r{j}"), Literal(w))) if w else Rule(f"r{j}") for j, w in chains]
            rules[f"r{i}"] = Choice((*begun, *map(Literal, words)))
        return Grammar(Rule("r0"), rules)

    def closed(self, items: set[Item]) -> frozenset[Item]:
        """With all that a rule whose end is reached leads to."""
        todo = list(items)
        while todo:
            rule, rest = todo.pop()
            if rest:
                continue
            for i in self.begun():
                for j, word in self.chains[i]:
                    if j == rule and (i, word) not in items:
                        items.add((i, word))
                        todo.append((i, word))
        return frozenset(items)

    def begun(self) -> set[int]:
        """The rules that a text of rule 0 may begin with."""
        found, todo = {0}, [0]
        while todo:
            for j, _ in self.chains[todo.pop()]:
                if j not in found:
                    found.add(j)
                    todo.append(j)
        return found

    def start(self) -> frozenset[Item]:
        """Before any text."""
        return self.closed({(i, word) for i in self.begun() for word in self.words[i]})

    def step(self, items: frozenset[Item], text: bytes) -> frozenset[Item]:
        """After these bytes; empty if they are refused."""
        for byte in text:
            items = self.closed({(i, rest[1:]) for i, rest in items if rest[:1] == bytes([byte])})
        return items

    def shortest(self, items: frozenset[Item]) -> int:
        """The bytes that are missing at least until rule 0 ends."""
        queue = [(0, item) for item in items]
        heapq.heapify(queue)
        done: set[Item] = set()
        while True:
            cost, (rule, rest) = heapq.heappop(queue)
            if rule == 0 and not rest:
                return cost
            if (rule, rest) not in done:
                done.add((rule, rest))
                for item in self.closed({(rule, b"")}) if rest else ():
                    heapq.heappush(queue, (cost + len(rest), item))


@st.composite
def left_linear(draw: st.DrawFn) -> LeftLinear:
    """5 to 60 rules, each of which has a word."""
    n = draw(st.integers(5, 60))
    some = st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True)
    chain = st.tuples(st.integers(0, n - 1), st.sampled_from(WORDS))
    words = draw(st.lists(some, min_size=n, max_size=n))
    chains = draw(st.lists(st.lists(chain, max_size=4), min_size=n, max_size=n))
    for i in range(draw(st.integers(0, n - 1))):  # so that many rules are begun
        chains[i].append((i + 1, draw(st.sampled_from(WORDS))))
    return LeftLinear(words, chains)


@settings(max_examples=35)
@given(left_linear(), st.data())
def test_masks_are_those_of_the_automaton(made: LeftLinear, data: st.DataObject) -> None:
    matcher = compile_grammar(made.grammar(), VOCABULARY).matcher()
    items = made.start()
    for _ in range(8):
        complete = (0, b"") in items
        wanted = {k for k, token in enumerate(VOCABULARY.tokens) if token and made.step(items, token)}
        assert list_tokens(matcher.mask()) == wanted | ({13} if complete else set())
        assert matcher.is_complete == complete
        assert matcher.next_bytes() == {rest[0] for _, rest in items if rest}
        assert len(matcher.shortest_completion()) == made.shortest(items)
        if not wanted:
            break
        token = data.draw(st.sampled_from(sorted(wanted)))
        matcher.advance(token)
        items = made.step(items, VOCABULARY.tokens[token] or b"")
