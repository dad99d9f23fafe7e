"""Conversion of a regular Grammar to a Dfa."""

from __future__ import annotations

from ..automata.dfa import Dfa
from ..base.errors import UnsupportedError
from ..base.options import Limits
from .nodes import Grammar
from .object_expansion import expand_objects
from .regular_parts import RegularParts
from .visitor import reached_rules

__all__ = ["to_dfa"]


def to_dfa(grammar: Grammar, what: str, limits: Limits = Limits()) -> Dfa:
    """Return the Dfa of the language of a Grammar.

    Parameters
    ----------
    grammar : Grammar
    what : str
        The operation that needs the Dfa, for error messages.
    limits : Limits
        `dfa_states` bounds the automaton.

    Raises
    ------
    UnsupportedError
        If a rule is recursive, or the automaton would have too many states.
    """
    plain = expand_objects(grammar, what, limits=limits)
    regular = RegularParts(limits.dfa_states)
    for name in reached_rules(plain.start, plain.rules):
        regular.add(name, plain.rules[name])
    dfa = regular.dfa(plain.start)
    if dfa is None:
        raise UnsupportedError(
            f"{what}: this needs a regular language, and here a rule names itself, or there are more than "
            f"{limits.dfa_states} states",
            hint="Use a regex, or rules that only repeat; or raise Limits.dfa_states.",
        )
    return dfa
