"""Search for a text that the rules derive and the parser rejects, because of a resolved conflict or a hidden terminal.

An LALR table resolves a conflict in favour of one side. Often no text is lost, as with a dangling `else`, which is
parsed the other way. The question is undecidable in general, so the overruled side of each conflict is explored, from
the shortest stacks on which it occurs to the shortest completions, for a bounded number of steps. Every result is a
proof: it was derived by the rules, and the parser was run on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count

import numpy as np

from ...base.options import Limits
from ...base.work import spend_work
from ...lalr.lalr_tables import list_overruled_reductions
from ...lalr.parser_code import Parser
from ...lalr.scanner_tables import END_OF_TEXT, Scanner
from .lark_loader import LoadedGrammar
from .lexer_terminals import build_alone

__all__ = ["find_lost_text"]

Stack = tuple[int, ...]
NEVER = 1 << 30
MOST_CONFLICTS = 200
"""Most conflicts that are explored."""
MOST_PATHS = 300
"""Most stacks with a conflict on top that are tried."""
MOST_STEPS = 150
"""Most stacks that are explored from each of them."""
WORK = "the search for texts that a conflict loses"


def find_lost_text(parser: Parser, loaded: LoadedGrammar, limits: Limits) -> str | None:
    """Return a text of the rules that the parser rejects, with terminals spelled out; None if the search finds none."""
    matched = {int(t) for t in np.unique(parser.scanner.accept_table)}
    if len(parser.table.terminals) == len(loaded.terminals) + 1:  # Else ignored ones may reach the table as keywords.
        matched -= parser.ignored & {s for right in loaded.productions.right for s in right}
    hidden = [t for t, terminal in enumerate(loaded.terminals) if t not in matched and terminal.kind != "declared"]
    if not hidden and not parser.table.conflicts:
        return None
    search = _ConflictSearch(parser, loaded, hidden, limits)
    for sentence in search.sentences():
        if search.accepts(sentence):
            continue
        text = search.spelled(sentence)
        if text is not None and not accepts_text(parser, text.encode(errors="surrogatepass")):
            return text
    return None


class _ConflictSearch:
    def __init__(self, parser: Parser, loaded: LoadedGrammar, hidden: list[int], limits: Limits) -> None:
        self.hidden, self.limits = hidden, limits
        self.parser, self.table, self.productions = parser, parser.table, parser.productions
        self.loaded = loaded
        self.end = parser.terminals - 1
        self.action = self.table.action.tolist()
        self.goto = self.table.goto.tolist()
        self.texts = self._find_texts()
        self.cheapest, self.costs = self._find_cheapest_rules()
        self.overruled_rules: dict[tuple[int, int], list[int]] = {}
        self.conflicts = list_overruled_reductions(self.productions, self.table) if self.table.conflicts else []
        for state, terminal, rule in self.conflicts:
            self.overruled_rules.setdefault((state, terminal), []).append(rule)

    def accepts(self, sentence: Stack) -> bool:
        """Return whether the table accepts a sentence; if so, its text is not rejected because of a conflict."""
        if not set(self.hidden).isdisjoint(sentence):
            return False
        stack = [self.table.start]
        return all(shift_terminal(self.parser, stack, t) for t in (*sentence, self.end))

    # ---- spelling -----------------------------------------------------------------------------------------------

    def _find_texts(self) -> list[str | None]:
        """Return a short text of each terminal, or None if it has none."""
        terminals = self.loaded.terminals
        starts = np.unique(self.parser.scan[self.parser.scan >= 0]).tolist()
        short = find_shortest_texts(self.parser.scanner, starts)
        for t in self.hidden:
            if terminals[t].kind == "pattern":
                scanner, start = build_alone(self.loaded, t, self.limits)
                short[t] = find_shortest_texts(scanner, [start] if start >= 0 else []).get(0, "")
        return [each.text if each.kind == "text" else short.get(t) or None for t, each in enumerate(terminals)]

    def spelled(self, sentence: Stack) -> str | None:
        """Spell a sentence of terminals, separated by blanks if blanks are ignored; None if a terminal has no text."""
        blank = any(self.loaded.terminals[t].regexp() and self._is_blank(t) for t in self.loaded.ignored)
        parts = [self.texts[t] if t < len(self.texts) else None for t in sentence]
        return None if None in parts else (" " if blank else "").join(part or "" for part in parts)

    def _is_blank(self, t: int) -> bool:
        scanner = self.parser.scanner
        for start in np.unique(self.parser.scan[self.parser.scan >= 0]).tolist():
            after = int(scanner.delta[start, 32])
            if after >= 0 and int(scanner.accept_table[scanner.accept[after], END_OF_TEXT]) == t:
                return True
        return False

    # ---- sentences ----------------------------------------------------------------------------------------------

    def sentences(self) -> Iterator[Stack]:
        """Yield sentences that use what the table or the lexer overruled, shorter ones first."""
        conflicts_of_state: dict[int, list[tuple[int, int]]] = {}
        for state, terminal, rule in self.conflicts[:MOST_CONFLICTS]:
            conflicts_of_state.setdefault(state, []).append((terminal, rule))
        hidden = [t for t in self.hidden if self.texts[t] is not None]
        for stack, spelled in self.paths({*conflicts_of_state}, set(hidden)):
            for t in hidden:
                if self.action[stack[-1]][t] > 0:
                    yield from self.complete_sentences([(*stack, self.action[stack[-1]][t] - 1)], (*spelled, t))
            for terminal, rule in conflicts_of_state.get(stack[-1], ()):
                lowered = self.reduced(stack, rule)
                if lowered is None:
                    continue
                if terminal == self.end:
                    if self.advance(lowered, self.end):
                        yield spelled
                else:
                    yield from self.complete_sentences(self.advance(lowered, terminal), (*spelled, terminal))

    def paths(self, states: set[int], terminals: set[int]) -> Iterator[tuple[Stack, Stack]]:
        """Yield stacks that end in one of the states or shift one of the terminals.

        Each comes with the sentence that leads there.
        """
        tiebreak = count()
        heap: list[tuple[int, int, Stack, Stack]] = [(0, next(tiebreak), (self.table.start,), ())]
        visits: dict[int, int] = {}
        yielded = 0
        while heap and yielded < MOST_PATHS:
            cost, _, stack, spelled = heappop(heap)
            top = stack[-1]
            visits[top] = visits.get(top, 0) + 1
            if visits[top] > 3:
                continue
            spend_work(20 + len(stack) + len(self.goto[top]) // 4 + len(self.action[top]) // 4, WORK)
            if top in states or any(self.action[top][t] > 0 for t in terminals):
                yielded += 1
                yield stack, spelled
            for t, act in enumerate(self.action[top][:-1]):
                if act > 0 and (t >= len(self.texts) or self.texts[t] is not None):
                    heappush(heap, (cost + 1, next(tiebreak), (*stack, act - 1), (*spelled, t)))
            for n, after in enumerate(self.goto[top]):
                if after >= 0 and self.costs[n] < NEVER and self.costs[n] + len(spelled) < 200:
                    sentence = self.sentence(n)
                    heappush(heap, (cost + self.costs[n], next(tiebreak), (*stack, after), (*spelled, *sentence)))

    def _find_cheapest_rules(self) -> tuple[list[int], list[int]]:
        """Return for each nonterminal the rule with the fewest terminals in total, and their number."""
        size = len(self.productions.nonterminals)
        rules, costs, changed = [-1] * size, [NEVER] * size, True
        while changed:
            changed = False
            spend_work(len(self.productions.left) * 2, WORK)
            for rule, (left, right) in enumerate(zip(self.productions.left, self.productions.right)):
                cost = 0
                for s in right:
                    if s < 0:
                        cost += costs[~s]
                    else:
                        cost += 1 if s >= len(self.texts) or self.texts[s] is not None else NEVER
                if cost < costs[left]:
                    costs[left], rules[left], changed = cost, rule, True
        return rules, costs

    def sentence(self, nonterminal: int) -> Stack:
        """Return the shortest sentence of a nonterminal."""
        out: list[int] = []
        stack = [~nonterminal]
        while stack:
            symbol = stack.pop()
            if symbol >= 0:
                out.append(symbol)
            else:
                stack += reversed(self.productions.right[self.cheapest[~symbol]])
        return tuple(out)

    # ---- a parser that also takes overruled actions -------------------------------------------------------------

    def reduced(self, stack: Stack, rule: int) -> Stack | None:
        stack = stack[: len(stack) - len(self.productions.right[rule])]
        after = self.goto[stack[-1]][self.productions.left[rule]] if stack else -1
        return (*stack, after) if after >= 0 else None

    def advance(self, stack: Stack, terminal: int) -> list[Stack]:
        """Return the stacks after a terminal, for a bounded number of sequences of reductions before it."""
        out: list[Stack] = []
        pending = [stack]
        for _ in range(50):
            if not pending or len(out) >= 6:
                break
            current = pending.pop()
            act = self.action[current[-1]][terminal]
            if act > 0:
                out.append((*current, act - 1))
            for rule in ([-1 - act] if act < 0 else []) + self.overruled_rules.get((current[-1], terminal), []):
                after = self.reduced(current, rule)
                if after is not None:
                    pending.append(after)
            spend_work(10 + len(current), WORK)
        return out

    def complete_sentences(self, stacks: list[Stack], spelled: Stack) -> Iterator[Stack]:
        """Yield complete sentences that continue one of the stacks, lower stacks first."""
        tiebreak = count()
        heap = [(len(stack), next(tiebreak), stack, spelled) for stack in stacks]
        yielded = 0
        for _ in range(MOST_STEPS):
            if not heap or yielded >= 5:
                return
            _, _, stack, text = heappop(heap)
            if self.advance(stack, self.end):
                yielded += 1
                yield text
            for t, act in enumerate(self.action[stack[-1]][:-1]):
                if act and (t >= len(self.texts) or self.texts[t] is not None):
                    for after in self.advance(stack, t):
                        heappush(heap, (len(text) - len(spelled) + len(after), next(tiebreak), after, (*text, t)))


def find_shortest_texts(scanner: Scanner, starts: list[int]) -> dict[int, str]:
    """Return for each terminal an approximately shortest text that is scanned as it at the end of the text."""
    texts: dict[int, str] = {}
    queue = [(start, b"") for start in starts]
    visited = set(starts)
    for state, text in queue:  # Grows during the iteration: breadth-first, shortest texts first.
        t = int(scanner.accept_table[scanner.accept[state], END_OF_TEXT])
        if t >= 0:
            texts.setdefault(t, text.decode(errors="replace"))
        spend_work(20, WORK)
        for after, byte in zip(*np.unique(scanner.delta[state], return_index=True)):
            if after >= 0 and int(after) not in visited:
                visited.add(int(after))
                queue.append((int(after), text + bytes([byte])))
    return texts


def accepts_text(parser: Parser, text: bytes) -> bool:
    """Return whether a parser without indentation accepts a text, by running lexer and table step by step."""
    scanner = parser.scanner
    stack, position = [parser.table.start], 0
    while True:
        terminal, after = parser.terminals - 1, position
        if position < len(text):
            state, terminal, k = int(parser.scan[stack[-1]]), -1, position
            while state >= 0 and k < len(text):
                state = int(scanner.delta[state, text[k]])
                k += 1
                if state >= 0:
                    match = int(scanner.accept_table[scanner.accept[state], text[k] if k < len(text) else END_OF_TEXT])
                    if match >= 0:
                        terminal, after = match, k
            if terminal < 0:
                return False
        position = after
        if terminal in parser.ignored:
            continue
        if not shift_terminal(parser, stack, terminal):
            return False
        if terminal == parser.terminals - 1:
            return True


def shift_terminal(parser: Parser, stack: list[int], terminal: int) -> bool:
    """Reduce and shift a terminal, in place; return whether it was accepted."""
    table = parser.table
    for _ in range(len(table.action) + len(stack) + 1):
        act = int(table.action[stack[-1], terminal])
        if act >= 0:
            break
        rule = -1 - act
        del stack[len(stack) - int(table.length[rule]) :]
        stack.append(int(table.goto[stack[-1], table.left[rule]]))
    if act > 0:
        stack.append(act - 1)
    return act > 0
