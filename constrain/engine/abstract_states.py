"""Abstract states: what matters of a set of configurations for the probability of what follows, without its details.

A set of configurations is exact, so texts that differ only in an earlier value, in the letters of an undeclared name or
in how many characters were counted are in different sets. An abstract state keeps the control state: the instruction,
the place within a declared string, the return addresses of the innermost callers, the registers (which keys of an
object are written), and the least number of bytes to the end of the text. Sets with equal abstract states behave alike
under a model, though not equally. What is learned for abstract states (`sampling.learned_twist`) is therefore little,
and approximate.

Reading one takes some 30 µs for a set that was not seen before, and no search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..base.errors import LimitError
from ..kernels import layout as at
from ..kernels.entry_points import advance_by_each, make_keyless
from ..program.least_costs import NEVER, LeastCosts
from .matcher import Matcher
from .set_costs import SetCosts
from .state_cache import StateCache

__all__ = ["AbstractState", "abstract_state", "abstract_states_after"]

CALLERS = 3
"""Return addresses that are part of an abstract state, the innermost first."""
MOST_CALLERS = 4
"""Callers of one stack node that are distinguished."""
PARSER_STATES = 3
"""States on top of a parser's stack that are part of an abstract state."""
FAR = 1 << 20
"""Least number of bytes of a state from which no completion is known."""
UNCERTAIN = at.IS_MEMBER | at.IS_OPEN | at.IS_UNSURE | at.HAS_CANDIDATES
"""Flags of sets whose steps depend on more than the keys, so that no keyless variant is taken."""
OBJECT_STOPS = (at.KEYS, at.OTHER, at.CLOSE, at.MORE)
"""Instructions that query the state of an object: the register of their rule is one."""

Parts = tuple[Any, ...]
UNREAD: Parts = ("unread",)
"""Key of all states that could not be read within the limits."""


class AbstractState:
    """An abstract state. One object per state in a state cache, so that dicts can key it by identity.

    Attributes
    ----------
    key : tuple
        The state, comparable between threads of one Constraint while its program is not relinked.
    coarse : tuple
        The same without registers and places within strings.
    least : int
        Least number of bytes to the end of the text (a lower bound, see `set_costs`).
    """

    __slots__ = ("coarse", "key", "least")

    def __init__(self, key: Parts, coarse: Parts, least: int) -> None:
        self.key, self.coarse, self.least = key, coarse, least


def abstract_state(matcher: Matcher) -> AbstractState:
    """Return the abstract state of a position whose text has not ended."""
    return matcher._retry_evicted(lambda state_cache: _states_of(state_cache).state(matcher._set))


def abstract_states_after(matcher: Matcher, tokens: NDArray[Any]) -> list[AbstractState | None]:
    """Return the abstract state after each of some tokens (int64 [n]), none of them an end token. None is for tokens
    that are refused, or cannot be followed within the limits.

    While an undeclared name is being spelled, its letters are ignored, as every spelling is a set of its own. A token
    that ends the name is followed with them: the name may be one that is declared, or was written before.
    """

    def follow(state_cache: StateCache) -> list[AbstractState | None]:
        states, start = _states_of(state_cache), matcher._set
        origin, sets = states.without_name(start), np.empty(len(tokens), np.int64)
        advance_by_each(state_cache.address, origin, np.ascontiguousarray(tokens), sets)
        after = sets.tolist()
        unsure = {number for number in set(after) if number < 0 or (origin != start and not states.is_spelling(number))}
        if unsure:
            steps = zip(after, tokens.tolist())
            after = [_step(matcher, state_cache, token) if number in unsure else number for number, token in steps]
        found = {number: states.state(number) if number > 0 else None for number in set(after)}
        return [found[number] for number in after]

    return matcher._retry_evicted(follow)


def _step(matcher: Matcher, state_cache: StateCache, token: int) -> int:
    """Return the set after a token that the state cache has to work for, DEAD if that exceeds a limit."""
    try:
        return matcher._completable_set_after(state_cache, token)
    except LimitError:
        return at.DEAD


def _states_of(state_cache: StateCache) -> AbstractStates:
    """Return the abstract states of a state cache, with their memos; new ones after an eviction."""
    states: AbstractStates | None = state_cache.derived.get(AbstractStates)
    if states is None or states.epoch != state_cache.epoch:
        costs = state_cache.least_costs()
        states = state_cache.derived[AbstractStates] = AbstractStates(state_cache, costs)
    return states


class AbstractStates(SetCosts):
    """The abstract states of the sets of one state cache in one epoch, each computed once."""

    def __init__(self, state_cache: StateCache, costs: LeastCosts) -> None:
        super().__init__(state_cache, costs)
        self._found: dict[int, AbstractState] = {}  # by set
        self._spelling: dict[int, bool] = {}  # by set
        self._shared: dict[Parts, AbstractState] = {}  # by key
        self._stacks: dict[int, tuple[Parts, Parts]] = {}  # by stack node: with and without registers

    def state(self, number: int) -> AbstractState:
        """Return the abstract state of a set."""
        known = self._found.get(number)
        if known is None:
            try:
                made = self._make(self.without_name(number))
            except LimitError:  # least lengths of rules that are reached here take too much work
                made = AbstractState(UNREAD, UNREAD, FAR)
            known = self._found[number] = self._shared.setdefault(made.key, made)
        return known

    def without_name(self, number: int) -> int:
        """Return the set without the letters of the undeclared name that is being spelled, or the set itself."""
        state_cache = self.state_cache
        flags = int(state_cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS])
        if not flags & at.IS_NAMING or flags & UNCERTAIN:
            return number
        return state_cache.run(make_keyless, number)

    def is_spelling(self, number: int) -> bool:
        """Return whether a name without letters is being spelled in a set."""
        known = self._spelling.get(number)
        if known is None:
            code = self.costs.code
            known = self._spelling[number] = any(
                code[pc] == at.OTHER and extra == at.OPEN_NAME for pc, _, _, _, extra in self._configs(number)
            )
        return known

    def _configs(self, number: int) -> list[list[int]]:
        first, count = self.state_cache.arrays[at.SETS][number * at.SET_W : number * at.SET_W + 2].tolist()
        configs: list[list[int]] = (
            self.state_cache.arrays[at.CONFIGS][5 * first : 5 * (first + count)].reshape(-1, 5).tolist()
        )
        return configs

    def _make(self, number: int) -> AbstractState:
        least = min(self.cost(number), FAR)
        flags = int(self.state_cache.arrays[at.SETS][number * at.SET_W + at.SET_FLAGS])
        fine, coarse = set[Parts](), set[Parts]()
        for pc, state, node, register, _ in self._configs(number):
            stack, addresses = self._describe_stack(node)
            fine.add((pc, self._describe_place(pc, state), self._describe_register(pc, register), stack))
            coarse.add((pc, addresses))
        accepts = flags & at.IS_ACCEPTING
        return AbstractState((accepts, least, *sorted(fine, key=repr)), (accepts, *sorted(coarse, key=repr)), least)

    def _describe_place(self, pc: int, state: int) -> Any:
        """Return the place of a configuration within its leaf, string or parsed text."""
        op = self.costs.code[pc]
        if op == at.LEAF:
            return state
        if op == at.OTHER:
            return self._leaf_cost(state)
        if op in (at.SET, at.KEYS):
            return tuple(self.state_cache.arrays[at.CURSORS][5 * state + at.CURSOR_LOW : 5 * state + 4].tolist())
        return self._describe_parser(state) if op == at.PARSE else 0

    def _describe_parser(self, lexemes: int) -> Parts:
        """Return, for each lexeme that may be in progress, its scanner state and the top of the parser's stack."""
        lists, pairs, found = self.state_cache.arrays[at.LISTS], self.state_cache.arrays[at.PAIRS], list[Parts]()
        for k in range(int(lists[lexemes + at.LIST_COUNT])):
            first = lexemes + at.LIST_FIRST + at.LEXEME_W * k
            pair, stack = int(lists[first + at.LEXEME_STACK]), list[int]()
            while pairs[at.PAIR_W * pair + at.PAIR_BELOW] >= 0 and len(stack) < PARSER_STATES:
                stack.append(int(pairs[at.PAIR_W * pair]))
                pair = int(pairs[at.PAIR_W * pair + at.PAIR_BELOW])
            found.append((int(lists[first + at.LEXEME_STATE]), *stack))
        return tuple(found)

    def _describe_register(self, pc: int, register: int) -> Any:
        """Return the register of a rule that continues at pc: of an object, the keys seen and what may come."""
        cost, stop = self.costs.known(pc)
        if cost >= NEVER or self.costs.code[stop] not in OBJECT_STOPS:
            return register
        _, seen, _, fresh = self._read_object_state(register)
        return (*sorted(seen), fresh, int(self.state_cache.arrays[at.OBJECTS][register + at.O_FLAGS]))

    def _describe_stack(self, node: int) -> tuple[Parts, Parts]:
        """Return the innermost callers of a stack node, with their registers and without."""
        found = self._stacks.get(node)
        if found is None:
            found = self._stacks[node] = self._read_stack(node, CALLERS)
        return found

    def _read_stack(self, node: int, depth: int) -> tuple[Parts, Parts]:
        if depth == 0 or node <= 0:
            return (), ()
        first, count = self.state_cache.arrays[at.NODES][at.NODE_W * node : at.NODE_W * node + 2].tolist()
        last = first + min(count, MOST_CALLERS)
        edges = self.state_cache.arrays[at.EDGES][at.EDGE_W * first : at.EDGE_W * last].reshape(-1, at.EDGE_W).tolist()
        fine, coarse = set[Parts](), set[Parts]()
        for pc, register, below in edges:
            if pc == at.RETURN:
                stack, addresses = self._read_stack(below, depth - 1)
                fine.update(stack)
                coarse.update(addresses)
                continue
            stack, addresses = self._read_stack(below, depth - 1)
            fine.add((pc, self._describe_register(pc, register), stack))
            coarse.add((pc, addresses))
        return tuple(sorted(fine, key=repr)), tuple(sorted(coarse, key=repr))
